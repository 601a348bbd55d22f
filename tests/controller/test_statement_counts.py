"""Metadata operations take a constant number of statements, however many segments and files."""

from collections.abc import Callable

import pytest

from tests.conftest import TestDatabase
from tests.watching import count_statements
from tests.world.groups import budget, open_batch
from tests.world.streams import Lane, staged, unique
from weir.controller.commit import commit
from weir.database.connection import Database
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join
from weir.retention.run import retain


def _counts(database: Database, segments: int) -> dict[str, int]:
    """How many statements each operation takes on a stream of so many segments and files."""
    lane = Lane.made(database, segments=segments, retention="consumed")
    counted = count_statements(database)
    counts: dict[str, int] = {}

    def count(what: str, work: Callable[[], object]) -> None:
        del counted[:]
        work()
        counts[what] = len(counted)

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


def test_operations_take_as_many_statements_for_200_segments_as_for_4(
    test_database: TestDatabase,
) -> None:
    few = _counts(test_database.open(), 4)
    # retain serves all streams; without the first one it has as many to serve as before.
    database = test_database.open()
    database.transaction(
        lambda c: c.exec_driver_sql("UPDATE stream SET state = 'deleted', sealed_clock = 0")
    )
    many = _counts(database, 200)
    assert few == many
    assert max(few.values()) <= 17, few
    assert (few["begin"], few["commit"]) == (1, 1)


def test_counting_sees_a_statement_more(test_database: TestDatabase) -> None:
    database = test_database.open()
    counted = count_statements(database)
    database.transaction(lambda c: c.exec_driver_sql("SELECT 1"))
    assert len(counted) == 1


pytestmark = pytest.mark.timeout(120)
