"""order="stream": every stream is delivered in write order, over batches, take-overs and splits."""

from functools import partial

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.reader_groups.ranked import Files, Place, Ranked
from tests.world.groups import ALL, Group, Reader, spans
from tests.world.streams import Lane
from weir.consumers.ranks import rows_in_first_half
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.programs.opening import shared
from weir.reader_groups.batches.splits import split_batch
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker


def test_a_commit_larger_than_the_budget_is_divided_between_the_runs_of_its_tasks(
    lane: Lane,
) -> None:
    # Two tasks wrote to both segments: ranks 0 to 9, and 10 to 19.
    ranked = Ranked(lane)
    ranked.append({"0.0": [[0, 1, 2, 9], [10, 19]], "1.0": [[3, 4, 5, 6, 7, 8], [*range(11, 19)]]})
    reader = Group.made(lane).reader()
    first = reader.must_open(12, order="stream")
    assert spans(first) == [("0.0", 0, 4), ("1.0", 0, 6)]
    reader.commit(first)
    assert spans(reader.must_open(12, order="stream")) == [("0.0", 4, 6), ("1.0", 6, 14)]


@pytest.mark.parametrize(
    ("files", "budget", "split"),
    [
        ({"0.0": [[0, 1], [4, 5]], "1.0": [[2, 3], [6, 7]]}, 1, False),
        ({"0.0": [[0, 3]], "1.0": [[1, 2]]}, ALL, True),  # its ranks alternate
    ],
)
def test_an_append_that_was_staged_before_a_merge_is_read_in_write_order(
    lane: Lane, files: Files, budget: int, split: bool
) -> None:
    ranked = Ranked(lane)
    attempt = lane.opened()
    lane.scale("0.0", "1.0", parts=1)
    ranked.commit(attempt, files)
    reader = Group.made(lane).reader()
    assert read_in_parts(reader, [ranked], budget, split=split) == [ranked.written()]


def read_in_parts(
    reader: Reader, streams: list[Ranked], budget: int, *, split: bool = False
) -> list[list[Place]]:
    """What each stream delivers, batch after batch; each batch of several events is split first."""
    delivered: list[list[Place]] = [[] for _ in streams]
    while batch := reader.open(budget, order="stream"):
        if split and batch.events > 1:
            split_batch(reader.group.database, batch, "failed", streams[0].rows_in_first_half)
            continue
        for stream, found in zip(streams, delivered, strict=True):
            found += stream.read(batch.bounds)
        reader.commit(batch)
        reader.group.check_positions()
    return delivered


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(10)))
def test_whatever_happens_each_stream_is_delivered_in_write_order(
    shared_database: Database, case: int
) -> None:
    random = random_for(case)
    streams = [Ranked(Lane.made(shared_database)) for _ in range(random.choice([1, 2]))]
    ranks = {path: found for one in streams for path, found in one.ranks.items()}
    group = Group.made(*(one.lane for one in streams))
    delivered: list[list[Place]] = [[] for _ in streams]
    reader, names = group.reader("0"), iter(map(str, range(1, 1000)))

    def step() -> bool:
        nonlocal reader
        if random.random() < 0.3:  # the reader died, and another one comes
            group.lapse(reader.reader_id)
            reader = group.reader(next(names))
        batch = reader.open(random.choice([1, 5, 20, ALL]), order="stream")
        if batch is None:
            return False
        ranks.update(path for one in streams for path in one.ranks.items())
        if batch.events > 1 and random.random() < 0.3:
            whole = Ranked(streams[0].lane, ranks)
            split_batch(group.database, batch, "failed", whole.rows_in_first_half)
        elif random.random() < 0.8:
            for stream, found in zip(streams, delivered, strict=True):
                found += stream.read(batch.bounds)
            reader.commit(batch)
        group.check_positions()
        return True

    for _ in range(15):
        for one in streams:
            attempt = one.lane.opened()
            if random.random() < 0.4:
                active = one.lane.active()
                seal = random.choice([active[:1], active[:2], active[-1:]])
                one.lane.scale(*seal, parts=random.choice([1, 2]))
            one.append_some(random, random.choice([attempt, None]))
        step()
    while step():
        pass
    assert delivered == [stream.written() for stream in streams]
    [row] = group.rows("SELECT * FROM weir.disorder WHERE reader_group = :name", name=group.name)
    assert row.promise == "write order"
    assert (row.max_lateness, row.p99_lateness, row.hole) == (row.max_lateness * 0,) * 3


def test_halves_are_about_equal(lane: Lane) -> None:
    ranked = Ranked(lane)
    for _ in range(9):
        ranked.append({"0.0": [[0, 2]], "1.0": [[1, 3, 4]]})
    reader = Group.made(lane).reader()
    split_batch(lane.database, reader.must_open(order="stream"), "failed", lambda _: [])
    assert reader.must_open(order="stream").events == 20


def test_the_ranks_of_real_files_divide_what_one_task_wrote(
    database: Database, settings: Settings
) -> None:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    lane = Lane.made(database)
    rows = pa.table({"key": [f"key {n}" for n in range(40)], "n": list(range(40))})
    shared(settings).append(str(lane.name), rows, writer_id="w", batch_id="1")
    reader = Group.made(lane).reader()
    read: list[tuple[int, int]] = []
    ranks = partial(rows_in_first_half, settings.warehouse)
    while batch := reader.open(order="stream"):
        if batch.events > 1:
            split_batch(database, batch, "failed", ranks)
            continue
        read += [(b.segment_id, b.start) for b in batch.bounds if b.end > b.start]
        reader.commit(batch)
    whole = shared(settings).read(str(lane.name), order="stream")
    assert whole.column("n").to_pylist() == list(range(40))
    places = [whole.column(name).to_pylist() for name in ("_segment", "_offset")]
    assert read == list(zip(*places, strict=True))
