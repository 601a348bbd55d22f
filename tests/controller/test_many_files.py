"""An operation takes as many statements for a thousand files as for ten."""

from collections.abc import Callable

from tests.conftest import TestDatabase
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.controller.read_plan import plan_of_bounds, plan_of_stream
from weir.database.connection import Database
from weir.retention.run import retain


def counts_of(database: Database, files: int) -> dict[str, int]:
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane)
    counted = count_statements(database)
    counts: dict[str, int] = {}

    def count(what: str, work: Callable[[], object]) -> None:
        del counted[:]
        work()
        counts[what] = len(counted)

    inputs = [f"{i}.csv" for i in range(files)]
    count("begin", lambda: lane.opened("batch", inputs=inputs))
    attempt = lane.opened("batch", inputs=inputs)
    count("commit", lambda: lane.commit(attempt, {"0.0": [2] * files}))
    count("plan of the stream", lambda: database.transaction(
        lambda c: plan_of_stream(c, lane.name)))  # fmt: skip
    bounds = [(0, 1, 2 * files - 1)]
    count("plan of bounds", lambda: database.transaction(
        lambda c: plan_of_bounds(c, lane.stream_id, bounds)))  # fmt: skip
    reader = group.reader()
    batches = []
    count("open batch", lambda: batches.append(reader.must_open(budget=files)))
    count("commit batch", lambda: reader.commit(batches[0]))
    count("checkpoint", group.checkpoint)
    count("retain", lambda: retain(database))
    count("truncate", lambda: lane.truncate(f"0.0={2 * files}, 1.0=0"))
    assert len(lane.rows("SELECT * FROM garbage WHERE reason = 'truncated'")) == files
    return counts


def test_operations_take_as_many_statements_for_1000_files_as_for_10(
    test_database: TestDatabase,
) -> None:
    few = counts_of(test_database.open(), 10)
    database = test_database.open()
    database.transaction(
        lambda c: c.exec_driver_sql("UPDATE stream SET state = 'deleted', sealed_clock = 0")
    )
    database.transaction(lambda c: c.exec_driver_sql("DELETE FROM garbage"))
    assert counts_of(database, 1000) == few
