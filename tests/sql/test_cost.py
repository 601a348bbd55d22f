"""A question costs the same however long the history is, also where most streams are short; and a
view of groups costs per group the same however many there are."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.sql.history import scaled_again_and_again
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run, unique
from weir.database.connection import Database
from weir.model.segment import parse_segment_name
from weir.queries.controller.cuts import AROUND
from weir.queries.controller.read_plan import SLICES_OF_BOUNDS
from weir.queries.reader_groups.outputs.records import NEWEST
from weir.queries.scaling.evaluate import RECORD_NOTHING
from weir.reader_groups.checkpoints.lifecycle import checkpoint

EPOCHS = 4000


def cost(connection: Connection, question: str, before: int = 9, **given: Any) -> int:
    """How many pages it reads, when it was asked `before` in this session so many times."""
    for _ in range(before):
        connection.execute(text(question), given)
    [[[plan]]] = connection.execute(
        text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {question}"), given
    )
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


def test_where_manifests_are_is_found_at_the_same_cost_however_many_folders_they_list(
    test_database: TestDatabase,
) -> None:
    lane = Lane.made(test_database.open())
    groups = [Group.made(lane) for _ in range(2)]
    reads: list[int] = []
    for first, last in ((0, 4), (5, 5000)):
        run(
            lane.database,
            """INSERT INTO parquet_output (group_id, group_name, output, number, batch_id, root,
                                           path, committed_at)
            SELECT group_id, name, 'parquet:' || o, n, n, CASE WHEN n < 3 THEN '/old' ELSE '/r' END,
                   o || '/group=' || name || '/batch=' || n || '/attempt=1', now()
            FROM reader_group, generate_series(CAST(:first AS integer), :last) n,
                 (VALUES ('a'), ('b/c')) AS outputs (o)""",
            first=first, last=last,
        )  # fmt: skip
        analyze(test_database)
        reads.append(lane.database.transaction(lambda c: cost(c, NEWEST.text)))
        found = [tuple(row) for row in rows(lane.database, NEWEST.text)]
        assert found == sorted(("/r", f"{o}/group={g.name}") for o in ("a", "b/c") for g in groups)
    assert reads[1] <= 4 * reads[0] < 5000


@pytest.fixture
def long_and_short(test_database: TestDatabase) -> tuple[Lane, Lane]:
    """A stream that was scaled thousands of times among many that never were."""
    database = test_database.open()
    lanes = [Lane.made(database, retention="consumed") for _ in range(60)]
    Group.made(*lanes)
    scaled_again_and_again(lanes[0], EPOCHS)
    analyze(test_database)
    return lanes[0], lanes[1]


def analyze(test_database: TestDatabase, how: str = "ANALYZE") -> None:
    execute(test_database.owner_dsn, how)


QUESTIONS = """
SELECT * FROM active_segments(:stream)
SELECT * FROM active_segments(:stream, clock_time(:middle))
SELECT epoch_at(:stream, clock_time(:middle))
SELECT * FROM scale_metadata(:stream, clock_time(:middle), clock_time(:middle))
SELECT * FROM successors(:stream, :segment)
SELECT * FROM predecessors(:stream, :segment)
SELECT * FROM segments_between(:stream, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT * FROM span(:stream, CAST(:cut AS jsonb))
SELECT * FROM size_till(:stream, CAST(:cut AS jsonb))
SELECT * FROM size_between(:stream, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT stream_cut_at(:stream, clock_time(:middle))
SELECT * FROM commits(:stream, clock_time(:middle), clock_time(:middle + 5))
SELECT * FROM commit_of(:stream, :segment, 0)
SELECT * FROM recorded_cut(:stream, clock_time(:middle))
SELECT next_cut(:stream, CAST(:cut AS jsonb), 10)
SELECT clock_after(:s, CAST(:tail AS jsonb))
SELECT join_cuts(:s, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT * FROM streams WHERE stream = :stream
SELECT * FROM current_epoch_record WHERE stream = :stream
SELECT * FROM epoch_transition WHERE stream = :stream AND epoch = :epoch
SELECT * FROM truncation_record WHERE stream = :stream
"""


def asked(lane: Lane, epoch: int) -> dict[str, Any]:
    """What the questions are asked about, around an epoch."""
    segment = f"{epoch + 1}.{epoch}" if epoch else "0.0"
    later = f"{epoch + 3}.{epoch + 2}" if epoch else "0.0"
    return {
        "s": lane.stream_id, "stream": str(lane.name), "epoch": epoch, "segment": segment,
        "cut": json.dumps({segment: 0, "1.0": 0}), "later": json.dumps({later: 0, "1.0": 0}),
        "tail": json.dumps(lane.tail()),
        "middle": lane.value("SELECT created_at FROM epoch WHERE stream_id = :s AND epoch = :e",
                             e=epoch),
    }  # fmt: skip


def costs_of(
    database: Database, questions: Iterable[str], given: Mapping[str, Any], before: int
) -> dict[str, int]:
    """The pages that each question reads."""
    return {
        question: database.transaction(
            partial(
                cost, question=question, before=before,
                **{name: value for name, value in given.items() if f":{name}" in question},
            )
        )
        for question in questions
    }  # fmt: skip


def costs(lane: Lane, epoch: int, before: int = 9) -> dict[str, int]:
    return costs_of(lane.database, QUESTIONS.strip().splitlines(), asked(lane, epoch), before)


def dearer(
    costs: dict[str, int], than: dict[str, int], but: int = 30
) -> dict[str, tuple[int, int]]:
    """The questions that read more than twice as many pages, and some."""
    return {q: (c, than[q]) for q, c in costs.items() if c > 2 * than[q] + but}


def test_a_question_reads_as_much_of_a_long_history_as_of_a_short_one(
    long_and_short: tuple[Lane, Lane],
) -> None:
    long, short = long_and_short
    assert dearer(costs(long, EPOCHS // 2), than=costs(short, 0)) == {}


def test_a_cut_with_an_old_segment_is_checked_without_reading_the_history_since(
    long_and_short: tuple[Lane, Lane],
) -> None:
    def of_the_tail(lane: Lane) -> int:
        ids = [parse_segment_name(name) for name in lane.active()]
        return lane.database.transaction(
            lambda c: cost(c, AROUND.text, stream_id=lane.stream_id, ids=ids),
        )

    long, short = long_and_short
    assert "1.0" in long.active()
    assert of_the_tail(long) <= 2 * of_the_tail(short) + 30
    long.truncate(", ".join(f"{name}={offset}" for name, offset in long.tail().items()))
    assert long.head() == long.tail()


def with_appends(lane: Lane, commits: int) -> Lane:
    """The stream with so many appends of one event, all by one writer."""
    run(
        lane.database,
        """WITH n AS MATERIALIZED (SELECT * FROM generate_series(1, :commits) n),
        appends AS (
            INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id,
                batch_id, fingerprint, state, epoch, opened_at, lease_until, ended_at, clock,
                allow_repeated_files, source)
            SELECT :s, :name, n, 'writer', n, '', 'committed', 0, now(), now(), now(), n, false,
                '' FROM n
        )
        INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
            transaction_number, first_seq, last_seq, schema_version, path)
        SELECT :s, :name, n % 2, n / 2, 1, 10, n, 0, 0, 1, n FROM n""",
        s=lane.stream_id, name=str(lane.name), commits=commits,
    )  # fmt: skip
    return lane


def test_the_files_of_a_batch_are_found_without_reading_the_history_before(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()

    def of_the_last(commits: int) -> int:
        lane = with_appends(Lane.made(database, retention="consumed"), commits)
        analyze(test_database, "VACUUM ANALYZE")
        past = commits // 2
        last = [{"segment": 0, "first": past, "past": past + 1}]
        return database.transaction(
            lambda c: cost(
                c, SLICES_OF_BOUNDS.text, stream_id=lane.stream_id, bounds=json.dumps(last)
            )
        )

    few = of_the_last(10)
    assert of_the_last(20_000) <= 2 * few + 30


def test_an_append_begins_without_reading_what_its_writer_has_appended_before(
    test_database: TestDatabase,
) -> None:
    begin = """SELECT * FROM begin_append(:scope, :name, 'writer', :batch, '', 60, false, '',
        '{}', '{}', NULL)"""

    def of_the_next(commits: int, how: str) -> int:
        database = test_database.open()
        # Its session has planned it already, when there was nothing yet.
        other = Lane.made(database, retention="consumed")
        first: dict[str, Any] = {"scope": other.name.scope, "name": other.name.name, "batch": "b"}
        database.transaction(lambda c: cost(c, begin, **first))
        lane = with_appends(Lane.made(database, retention="consumed"), commits)
        analyze(test_database, how)
        given = {"scope": lane.name.scope, "name": lane.name.name, "batch": "the next"}
        run(database, "UPDATE stream SET next_transaction_number = :n WHERE stream_id = :s",
            n=commits + 1, s=lane.stream_id)  # fmt: skip
        return database.transaction(lambda c: cost(c, begin, before=0, **given))

    for how in ("SELECT 1", "VACUUM ANALYZE"):
        assert of_the_next(20_000, how) <= 2 * of_the_next(10, how) + 30, how


def test_why_files_are_kept_costs_per_file_the_same_however_many_there_are(
    database: Database,
) -> None:
    def of(segments: int) -> int:
        lane = Lane.made(database, segments=segments, retention="consumed")
        Group.made(lane)
        lane.append({f"{i}.0": 1 for i in range(segments)})
        return database.transaction(
            lambda c: cost(c, "SELECT * FROM why_kept(:stream)", 1, stream=str(lane.name))
        )

    assert of(160) < 8 * of(40)


def test_the_disorder_of_a_group_that_has_read_all_is_measured_without_a_look_at_each_position(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    lane = Lane.made(database, segments=200, retention="consumed")
    group = Group.made(lane)
    lane.append({f"{i}.0": 1 for i in range(200)})
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch)
    analyze(test_database)

    def of_the_batch() -> int:
        return database.transaction(
            lambda c: cost(
                c, "SELECT measure_disorder(:g, :b)", 1, g=batch.group_id, b=batch.batch_id
            )
        )

    all_read = of_the_batch()
    lane.append({"0.0": 1})
    assert all_read < of_the_batch() / 2


def test_decisions_of_scaling_are_recorded_at_the_same_cost_per_stream_however_many_there_are(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    streams = [Lane.made(database, retention="consumed").stream_id for _ in range(300)]
    loads = json.dumps([{"segment": f"{n}.0", "rates": [1 / 3] * 5, "age": n} for n in range(10)])

    def of(ids: list[int]) -> int:
        each: dict[str, Any] = {
            "ids": ids, "clocks": ids, "next": ids, "epochs": ids, "intervals": ids,
            **dict.fromkeys(("policies", "rules", "reasons"), ["said"] * len(ids)),
            "loads": [loads] * len(ids), "hot": [], "lows": [], "highs": [],
        }  # fmt: skip
        # So that Postgres takes the table for empty.
        analyze(test_database, "TRUNCATE weir_internal.scale_decision; ANALYZE")
        return database.transaction(lambda c: cost(c, RECORD_NOTHING.text, 0, **each))

    assert of(streams) < 15 * of(streams[:30])


def test_a_stream_of_which_the_statistics_know_nothing_is_asked_as_cheaply(
    long_and_short: tuple[Lane, Lane], test_database: TestDatabase
) -> None:
    def for_the_first_time(lane: Lane, epoch: int) -> dict[str, int]:
        # In a new session, which plans each statement for what is asked.
        return costs(replace(lane, database=test_database.open()), epoch, before=0)

    grown = Lane.made(long_and_short[0].database, retention="consumed")
    before = for_the_first_time(grown, 0)
    scaled_again_and_again(grown, EPOCHS)
    # Some pages more, of the catalogue, where there is something to look for now.
    assert dearer(for_the_first_time(grown, EPOCHS // 2), than=before, but=70) == {}


def test_no_statistics_are_kept_of_whose_stream_a_row_is(database: Database) -> None:
    kept = rows(
        database,
        """SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'weir_internal'::regnamespace AND c.relkind = 'r'
          AND a.attname = 'stream_id' AND a.attstattarget IS DISTINCT FROM 0""",
    )
    assert [row.relname for row in kept] == ["stream"]


GROUPS = """
SELECT * FROM reader_groups
SELECT * FROM readers
SELECT * FROM positions
SELECT * FROM assignment
SELECT * FROM lag
SELECT * FROM unread
SELECT * FROM catch_up
SELECT * FROM batches
SELECT * FROM open_batches
SELECT * FROM checkpoints
SELECT * FROM checkpoint_blockers
"""


def with_copies(group: Group, count: int) -> None:
    """So many more groups that stand where this one does, with the same readers and batches."""
    copied = "generate_series(1, :count) n JOIN reader_group o ON o.group_id = :g"
    run(
        group.database,
        f"""WITH new AS (
            INSERT INTO reader_group (name, subscriber, on_gap)
            SELECT :name || '-' || n, o.subscriber, o.on_gap FROM {copied}
            RETURNING group_id, name AS group_name
        ), streams AS (
            INSERT INTO reader_group_stream (group_id, stream_id, start_cut)
            SELECT new.group_id, stream_id, start_cut FROM new, reader_group_stream
            WHERE reader_group_stream.group_id = :g
        ), readers AS (
            INSERT INTO reader (group_id, reader_id, token, lease_until, joined_at)
            SELECT new.group_id, reader_id, token, lease_until, joined_at
            FROM new, reader WHERE reader.group_id = :g
        ), batches AS (
            INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state,
                                      bounds, events, bytes, opened_at, committed_at, ended_at)
            SELECT new.group_id, new.group_name, batch_id, reader_id, token, state, bounds, events,
                   bytes, opened_at, committed_at, ended_at
            FROM new, reader_batch WHERE reader_batch.group_id = :g
        ), checkpoints AS (
            INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, released, state,
                                    waits_for, expires_at, ended_at)
            SELECT new.group_id, name, kind, created_at, cuts, released, state, waits_for,
                   expires_at, ended_at
            FROM new, checkpoint WHERE checkpoint.group_id = :g
        )
        INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset,
                                          reader_id)
        SELECT new.group_id, stream_id, segment_id, state, next_offset, reader_id
        FROM new, reader_group_segment p WHERE p.group_id = :g""",
        g=group.group_id, count=count, name=unique(group.name),
    )  # fmt: skip


def test_a_view_of_many_groups_reads_as_much_per_group_as_one_of_few(
    test_database: TestDatabase,
) -> None:
    database = test_database.open()
    lane = Lane.made(database, segments=8, retention="consumed")
    for _ in range(5):
        lane.append(dict.fromkeys(lane.active(), 10))
    group = Group.made(lane)
    reader = group.reader()
    reader.commit(reader.must_open(budget=100))
    group.checkpoint("c")
    reader.must_open(budget=100)
    checkpoint(database, group.name, name="b", barrier=True, request_id=unique("b"))

    def costs(where: str = "") -> dict[str, int]:
        analyze(test_database)
        questions = [f"{question} {where}" for question in GROUPS.strip().splitlines()]
        return costs_of(database, questions, {}, 1)

    with_copies(group, 9)
    of_10, of_one = costs(), costs(f"WHERE reader_group = '{group.name}'")
    with_copies(group, 90)
    of_100, still_of_one = costs(), costs(f"WHERE reader_group = '{group.name}'")
    assert {q: (of_10[q], n) for q, n in of_100.items() if n > 30 * of_10[q] + 30} == {}
    assert {q: (of_one[q], n) for q, n in still_of_one.items() if n > 2 * of_one[q] + 30} == {}, (
        "who asks about one group looks at that one only"
    )
