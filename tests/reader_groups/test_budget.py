"""What fits into a batch: whole files, in the order in which they were written."""

from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.controller.driver import Driver
from tests.sql.history import scaled_again_and_again
from tests.sql.test_cost import analyze
from tests.watching import count_statements
from tests.world.groups import ALL, Group, Reader, spans
from tests.world.streams import BYTES_PER_EVENT, Lane, rows, run
from weir.database.connection import Database
from weir.queries.reader_groups.batches.budget import FIT
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.locks import lock_group
from weir.reader_groups.positions import read_graphs, read_positions


class File(NamedTuple):
    """A file, or the part of it that is not read yet. Sorts by when it was written."""

    clock: int
    place: int  # events of the same commit and segment before it
    segment_id: int
    start: int
    end: int
    bytes: int


def files_of(lane: Lane) -> list[File]:
    """All files of a stream as they were written; one of several commits counts in each."""
    found = lane.rows(
        """SELECT clock, p.first - i.start_offset, f.segment_id, p.first, p.past,
                  f.bytes * (p.past - p.first) / f.events
        FROM data_file f JOIN time_index i ON i.stream_id = f.stream_id
            AND i.segment_id = f.segment_id
        CROSS JOIN LATERAL (SELECT greatest(i.start_offset, f.start_offset) AS first,
            least(i.start_offset + i.events, f.start_offset + f.events) AS past) p
        WHERE f.stream_id = :s AND p.first < p.past"""
    )
    return sorted(File(*row) for row in found)


def prefix(files: list[File], budget: Budget) -> list[File]:
    """By brute force: what comes first and is together no more than the budget; at least one."""
    taken = files[:1]
    for file in files[1:]:
        more = [*taken, file]
        if (
            len(more) > budget.files
            or sum(f.end - f.start for f in more) > budget.events
            or sum(f.bytes for f in more) > budget.bytes
        ):
            break
        taken = more
    return taken


def read_by(batch: Batch) -> dict[int, tuple[int, int]]:
    return {b.segment_id: (b.start, b.end) for b in batch.bounds if b.end > b.start}


def ranges_of(files: list[File]) -> dict[int, tuple[int, int]]:
    return {
        segment: (min(f.start for f in here), max(f.end for f in here))
        for segment in {f.segment_id for f in files}
        for here in [[f for f in files if f.segment_id == segment]]
    }


def open_batch(reader: Reader, budget: Budget) -> Batch | None:
    return reader.open(budget.events, bytes_=budget.bytes, files=budget.files)


def compacted(lane: Lane, random: Random) -> None:
    """Make one file of two neighbours of a segment, as if they had been concatenated."""
    files = lane.files()
    pairs = [
        (a, b)
        for a, b in pairwise(files)
        if a.segment_id == b.segment_id and a.start_offset + a.events == b.start_offset
    ]
    changed: set[Any] = set()  # a file that is gone can't be the first of another pair
    for first, second in random.sample(pairs, min(len(pairs), 3)):
        if changed & {first, second}:
            continue
        changed |= {first, second}
        run(
            lane.database,
            """WITH gone AS (
                DELETE FROM data_file WHERE stream_id = :s AND segment_id = :segment
                AND start_offset = :second RETURNING events, bytes
            )
            UPDATE data_file f SET events = f.events + gone.events, bytes = f.bytes + gone.bytes
            FROM gone WHERE f.stream_id = :s AND f.segment_id = :segment
            AND f.start_offset = :first""",
            s=lane.stream_id, segment=first.segment_id,
            first=first.start_offset, second=second.start_offset,
        )  # fmt: skip


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(6)))
def test_a_batch_reads_what_was_written_first_as_far_as_the_budget_goes(
    shared_database: Database, case: int
) -> None:
    driver, random = Driver(shared_database, segments=2), random_for(case)
    for _ in range(12):
        if random.random() < 0.4:
            driver.open.append(driver.begin())
        if random.random() < 0.4:
            driver.scale(random)
        if driver.open and random.random() < 0.4:
            driver.commit_some(random, 2)
        driver.append(random)
    if case % 2:
        compacted(driver.lane, random)
    left = files_of(driver.lane)
    reader = Group.made(driver.lane).reader()
    while left:
        budget = Budget(*[random.choice([0, 1, 5, 20, ALL]) for _ in range(3)])
        batch = open_batch(reader, budget)
        assert batch is not None
        taken = prefix(left, budget)
        assert read_by(batch) == ranges_of(taken)
        assert reader.group.batches()[-1].bytes == sum(file.bytes for file in taken)
        left = left[len(taken) :]
        reader.commit(batch)
        reader.group.check_positions()
    assert reader.open() is None


def test_a_position_within_a_file_costs_what_is_left_of_it(lane: Lane) -> None:
    lane.append({"0.0": [10, 10], "1.0": 10})
    reader = Group.made(lane, start="0.0=4, 1.0=9").reader()
    first = reader.must_open(7)
    assert (spans(first), first.events) == ([("0.0", 4, 10), ("1.0", 9, 10)], 7)
    assert reader.group.batches()[0].bytes == 7 * BYTES_PER_EVENT
    reader.commit(first)
    assert reader.read_all(7) == [("0.0", 10, 20)]


def test_of_several_streams_what_was_written_first_is_read_first(lane: Lane) -> None:
    other = Lane.made(lane.database)
    for _ in range(3):
        lane.append({"0.0": 2})
        other.append({"0.0": 2})
    reader = Group.made(lane, other).reader()
    read = []
    while batch := reader.open(4):
        read.append({b.stream_id: b.end for b in batch.bounds})
        reader.commit(batch)
    assert read == [dict.fromkeys([lane.stream_id, other.stream_id], end) for end in (2, 4, 6)]


def test_a_run_that_stops_at_a_cut_takes_no_file_from_beyond_it(lane: Lane) -> None:
    lane.append({"0.0": 2})
    lane.append({"0.0": 2, "1.0": 2})
    until = {lane.stream_id: lane.tail()}
    for _ in range(3):
        lane.append({"0.0": 2, "1.0": 2})
    low, high = lane.scale("0.0")
    lane.append({low: 2, high: 2})
    reader = Group.made(lane).reader()
    assert reader.read_all(4, until=until) == [("0.0", 0, 4), ("1.0", 0, 2)]
    assert sum(end - start for _, start, end in reader.read_all(4)) == 16


def test_what_was_truncated_meanwhile_takes_nothing_of_a_budget(lane: Lane) -> None:
    # The positions move together, so they stay below the head while one of them is in a batch.
    lane.append({"0.0": [4, 4], "1.0": [4, 4]})
    low, high = lane.scale("1.0")
    lane.append({"0.0": 40, low: 4, high: 4})
    group = Group.made(lane, on_gap="skip", subscriber=False)
    a, b = group.reader("a"), group.reader("b")
    first = a.must_open(4, expected=2)
    assert spans(first) == [("0.0", 0, 4)]
    lane.truncate(f"0.0=4, {low}=0, {high}=0")
    assert spans(b.must_open(4)) == [("1.0", 0, 8), (low, 0, 4)]


def commit_events(lane: Lane, commits: str) -> None:
    """Two events in a file of its own for each row of `commits`: number, segment, offset, clock."""
    run(
        lane.database,
        f"""WITH c AS MATERIALIZED ({commits}), transactions AS (
            INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id,
                                     batch_id, fingerprint, state, epoch, opened_at, lease_until,
                                     ended_at, clock, allow_repeated_files, source)
            SELECT :s, :name, n, '', n, '', 'committed', 0, now(), now(), now(), clock, false, ''
            FROM c
        ), entries AS (
            INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events,
                                    start_byte, bytes, clock, transaction_number)
            SELECT :s, :name, segment_id, first, 2, first * 10, 20, clock, n FROM c
        ), files AS (
            INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
                                   transaction_number, first_seq, last_seq, schema_version, path)
            SELECT :s, :name, segment_id, first, 2, 20, n, 0, 1, 1, n FROM c
        ), sealed AS (
            UPDATE segment g SET events = 2, bytes = 20 FROM c
            WHERE g.stream_id = :s AND g.segment_id = c.segment_id AND g.sealed_epoch IS NOT NULL
        )
        UPDATE segment_tail t SET tail_offset = c.past, tail_bytes = c.past * 10
        FROM (SELECT segment_id, max(first) + 2 AS past FROM c GROUP BY segment_id) c
        WHERE t.stream_id = :s AND t.segment_id = c.segment_id""",
        s=lane.stream_id,
        name=str(lane.name),
    )


def test_catching_up_over_1000_scales_takes_as_many_batches_as_the_budget_says(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    lane = Lane.made(database)
    group = Group.made(lane)
    scaled_again_and_again(lane, 1_000)
    commit_events(
        lane,
        """SELECT e.epoch + 1 AS n, g.segment_id, 0 AS first, e.created_at AS clock
        FROM segment g JOIN epoch e ON e.stream_id = g.stream_id AND e.epoch = g.creation_epoch
        WHERE g.stream_id = :s AND g.key_low = 0""",
    )
    reader = group.reader()
    counted = count_statements(database)
    taken, statements = [], set()
    while batch := reader.open(500):
        reader.commit(batch)
        taken.append(batch.events)
        statements.add(len(counted))
        counted.clear()
    assert taken == [500, 500, 500, 500, 2]
    # The first looks at the head, and the last fits, so that its bounds are planned once.
    assert len(statements) <= 3
    assert group.cut() == lane.tail()


def test_a_group_looks_at_nothing_that_it_has_passed(test_database: TestDatabase) -> None:
    # One of its positions is as old as the stream, the other follows a thousand scales.
    database = test_database.open()
    lane = Lane.made(database)
    scaled_again_and_again(lane, 1_000)
    group = Group.made(lane, start="tail")
    lane.scale(next(name for name in lane.tail() if name != "1.0"), parts=3)

    def sight(connection: Connection) -> set[str]:
        locked = lock_group(connection, group.name)
        graphs = read_graphs(connection, locked, read_positions(connection, locked))
        return {segment.name for segment in graphs[lane.stream_id].states}

    assert database.transaction(sight) == group.cut().keys() | lane.tail().keys()


def test_a_plan_reads_what_the_batch_reads_and_not_the_backlog(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    lanes = [Lane.made(database) for _ in range(40)]
    explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {FIT}"
    pages = []
    for lane, commits in zip(lanes, [200, 4_000], strict=False):
        commit_events(
            lane,
            f"""SELECT n, 0::bigint AS segment_id, (n - 1) * 2 AS first, last_clock + n AS clock
            FROM stream, generate_series(1, {commits}) n WHERE stream_id = :s""",
        )
    analyze(test_database)
    for lane, commits in zip(lanes, [200, 4_000], strict=False):
        given: dict[str, Any] = {
            "streams": [lane.stream_id], "segments": [0], "starts": [0], "ends": [commits * 2],
            "events": 100, "bytes": ALL, "files": 100, "unit": "file",
        }  # fmt: skip
        [[[plan]]] = rows(database, explain, **given)
        pages.append(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])
    assert pages[1] < 1.5 * pages[0]
