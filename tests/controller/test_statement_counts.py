"""Metadata operations take a constant number of statements, however many segments and files."""

from collections.abc import Callable
from functools import partial

import pytest

from tests.conftest import TestDatabase
from tests.watching import count_statements
from tests.world.groups import Group, budget, open_batch
from tests.world.streams import Lane, staged, unique
from weir.controller.commit import commit
from weir.controller.read_plan import plan_of_bounds, plan_of_stream
from weir.database.connection import Database
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join
from weir.retention.run import retain


class Counts(dict[str, int]):
    """How many statements each operation takes."""

    def __init__(self, database: Database) -> None:
        self._counted = count_statements(database)

    def count(self, what: str, work: Callable[[], object]) -> None:
        del self._counted[:]
        work()
        self[what] = len(self._counted)


def of_segments(database: Database, segments: int) -> Counts:
    """On a stream of so many segments and files."""
    lane = Lane.made(database, segments=segments, retention="consumed")
    counts = Counts(database)
    count = counts.count
    written = {f"{i}.0": [3, 4] for i in range(segments)}
    group = unique("group")
    count("begin", lambda: lane.opened("one"))
    attempt = lane.opened("two")
    count("first commit", lambda: commit(database, staged(attempt, written)))
    again = lane.opened("again")
    count("commit", lambda: commit(database, staged(again, written)))
    late = lane.opened("late")
    count("scale", lambda: lane.scale("0.0", parts=2))
    count("commit with a roll", lambda: commit(database, staged(late, {"0.0": 2, "1.0": 2})))
    cut = ", ".join(f"{name}=0" for name in lane.tail())
    count("create group", lambda: create_reader_group(
        database, group, [lane.name], request_id=unique("group")))  # fmt: skip
    token = join(database, group, "reader", 60.0)
    batches: list[Batch | None] = []
    count("open batch", lambda: batches.append(
        open_batch(database, group, "reader", token, lease=60.0, budget=budget())))  # fmt: skip
    [batch] = batches
    assert batch is not None
    count("commit batch", lambda: commit_batch(database, batch, lease=60.0))
    count("checkpoint", lambda: checkpoint(database, group))
    count("truncate", lambda: lane.truncate(cut))
    count("retain", lambda: retain(database))
    return counts


def of_files(database: Database, files: int) -> Counts:
    """On a stream of so many files of one segment."""
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane)
    counts = Counts(database)
    count = counts.count
    inputs = [f"{i}.csv" for i in range(files)]
    count("begin", lambda: lane.opened("batch", inputs=inputs))
    attempt = lane.opened("batch", inputs=inputs)
    count("first commit", lambda: lane.commit(attempt, {"0.0": [2] * files}))
    plan = partial(plan_of_stream, name=lane.name)
    count("plan of the stream", lambda: database.transaction(plan))
    part = partial(plan_of_bounds, stream_id=lane.stream_id, bounds=[(0, 1, 2 * files - 1)])
    count("plan of bounds", lambda: database.transaction(part))
    reader = group.reader()
    batches = []
    count("open batch", lambda: batches.append(reader.must_open(budget=files)))
    count("commit batch", lambda: reader.commit(batches[0]))
    count("checkpoint", group.checkpoint)
    count("retain", lambda: retain(database))
    count("truncate", lambda: lane.truncate(f"0.0={2 * files}, 1.0=0"))
    assert len(lane.rows("SELECT * FROM garbage WHERE reason = 'truncated'")) == files
    return counts


@pytest.mark.parametrize(
    ("counts_of", "few", "many"), [(of_segments, 4, 200), (of_files, 10, 1000)]
)
def test_operations_take_as_many_statements_for_many_segments_or_files_as_for_few(
    test_database: TestDatabase, counts_of: Callable[[Database, int], Counts], few: int, many: int
) -> None:
    expected = counts_of(test_database.open(), few)
    # retain serves all streams; without the first one it has as many to serve as before.
    database = test_database.open()
    database.transaction(
        lambda c: c.exec_driver_sql("UPDATE stream SET state = 'deleted', sealed_clock = 0")
    )
    database.transaction(lambda c: c.exec_driver_sql("DELETE FROM garbage"))
    assert counts_of(database, many) == expected
    assert max(expected.values()) <= 17, expected
    assert expected["begin"] == expected.get("commit", 1) == 1


def test_counting_sees_a_statement_more(test_database: TestDatabase) -> None:
    database = test_database.open()
    counted = count_statements(database)
    database.transaction(lambda c: c.exec_driver_sql("SELECT 1"))
    assert len(counted) == 1


pytestmark = pytest.mark.timeout(120)
