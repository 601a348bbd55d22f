"""A stream that a run of retention cannot decide stops no other stream."""

from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.controller.expiry import expire as expire_transactions
from weir.controller.locks import lock_streams
from weir.controller.seal import seal_stream
from weir.database import connection as storage
from weir.database import session
from weir.model.names import stream_name
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.groups.readers import expire
from weir.reader_groups.locks import lock_group
from weir.retention.prune import prune
from weir.retention.run import retain


@pytest.fixture
def lane(alone: Lane) -> Lane:
    """Retention serves all streams of a database."""
    return alone


def be_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that are opened from now on wait for a lock for 100 ms."""
    hasty = {**session.SESSION, "lock_timeout": "100ms"}
    monkeypatch.setattr(session, "SESSION", hasty)
    options = session.OPTIONS.replace("lock_timeout=1min", "lock_timeout=100ms")
    monkeypatch.setattr(session, "OPTIONS", options)


@pytest.mark.parametrize("what", ["transactions", "streams of one group"])
def test_what_is_kept_locked_is_waited_for_once(
    lane: Lane, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Each for the whole patience would take longer than a periodic task may."""
    group = Group.made(lane, *[Lane.made(lane.database, retention="consumed") for _ in range(5)])
    for _ in range(6):
        lane.opened(lease=0.0)
    be_hasty(monkeypatch)
    monkeypatch.setattr(storage, "_HURRIED", text("SET LOCAL lock_timeout = '50ms'"))
    hasty = test_database.open(patience=0.5)
    hurried: list[str] = []

    def sent(*given: Any) -> None:
        if "50ms" in given[2]:
            hurried.append(given[2])

    event.listen(hasty.engine, "before_cursor_execute", sent)

    def holding(connection: Connection) -> None:
        if what == "transactions":
            lock_streams(connection, ids=[lane.stream_id])
        else:
            lock_group(connection, group.name)
        failed = expire_transactions(hasty, 0.0) if what == "transactions" else retain(hasty)
        assert len(failed) == 6
        assert all("has held a lock" in one["error"] for one in failed)
        assert len(hurried) == 5, "the others are tried once each, and only for a moment"

    lane.database.transaction(holding)
    hasty.dispose()


def test_a_stream_that_somebody_keeps_locked_does_not_stop_the_others(
    lane: Lane, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Lane.made(lane.database, retention="consumed")
    groups = [Group.made(one) for one in (lane, other)]
    for one, group in zip((lane, other), groups, strict=True):
        one.append({"0.0": 3})
        one.scale("0.0")
        group.reader().read_all()
    # A minute each would be long here.
    be_hasty(monkeypatch)
    hasty = test_database.open(patience=0.3)

    def holding(connection: Connection) -> None:
        lock_streams(connection, ids=[lane.stream_id])
        made, [failed] = checkpoint_all(hasty)
        assert [one["reader_group"] for one in made] == [groups[1].name]
        assert f"group {groups[0].name}: another session has held a lock" in failed
        stuck, done = retain(hasty)
        assert f"stream {lane.name}: another session has held a lock" in stuck["error"]
        assert (done["stream"], done["events"]) == (str(other.name), 3)

    lane.database.transaction(holding)
    assert [one["reader_group"] for one in checkpoint_all(hasty)[0]] == [groups[0].name]
    freed = {report["stream"]: report["events"] for report in retain(hasty)}
    assert freed[str(lane.name)] == 3

    def holding_still(connection: Connection) -> None:
        lock_streams(connection, ids=[lane.stream_id])
        stuck, pruned = prune(hasty, 0.0)
        assert f"stream {lane.name}: another session has held a lock" in str(stuck["error"])
        assert (pruned["stream"], pruned["segments"]) == (str(other.name), 1)

    lane.database.transaction(holding_still)
    assert [one["segments"] for one in prune(hasty, 0.0)] == [1]
    for one, group in zip((lane, other), groups, strict=True):
        one.opened("expired", lease=0.0)
        group.lapse("reader")

    def holding_what_expired(connection: Connection) -> None:
        lock_streams(connection, ids=[lane.stream_id])
        lock_group(connection, groups[0].name)
        for ends, what in ((expire_transactions, str(lane.name)), (expire, groups[0].name)):
            ended = ends(hasty, 0.0)
            assert len(ended) == 2
            [said] = [one["error"] for one in ended if "error" in one]
            assert f"{what}: another session has held a lock" in said

    lane.database.transaction(holding_what_expired)
    hasty.dispose()


def test_a_stream_that_is_named_and_can_not_be_decided_says_why(lane: Lane) -> None:
    nobody, sealed = stream_name("no/such"), Lane.made(lane.database, retention="consumed")
    seal_stream(lane.database, sealed.name, request_id="seal")
    reports = retain(lane.database, [nobody, sealed.name, lane.name], dry_run=True)
    errors = [report.get("error", "") for report in reports]
    codes = [error.partition("[")[2] for error in errors]
    assert codes == ["stream_not_found]", "stream_not_active]", ""]
    assert f"{sealed.name} is sealed" in errors[1]
    [row] = lane.rows("SELECT * FROM retention_dry_run(:n)", n=str(sealed.name))
    assert (row.rule, row.cut, row.events) == ("sealed", None, 0)
