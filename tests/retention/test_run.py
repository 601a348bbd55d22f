"""A run of retention: what is decided, truncated and recorded."""

import time

import pytest
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.controller.support import Lane, at_once, rows, run, unique
from tests.reader_groups.support import Group
from tests.retention.support import pass_time
from weir.controller.expiry import expire as expire_transactions
from weir.controller.locks import lock_group, lock_streams
from weir.controller.seal import seal_stream
from weir.database import connection as storage
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.reader_groups.periodic_checkpoints import checkpoint_all
from weir.reader_groups.readers import expire
from weir.retention.capture import capture
from weir.retention.prune import prune
from weir.retention.run import retain


def decisions(lane: Lane) -> list[str]:
    found = lane.rows(
        "SELECT rule FROM retention_decision WHERE stream_id = :s ORDER BY decided_at"
    )
    return [row.rule for row in found]


@pytest.fixture
def lane(database: Database) -> Lane:
    """A stream in a database of its own: retention serves all streams."""
    return Lane.made(database)


def be_hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions that are opened from now on wait for a lock for 100 ms."""
    hasty = {**storage._SESSION, "lock_timeout": "100ms"}
    monkeypatch.setattr(storage, "_SESSION", hasty)
    options = storage._OPTIONS.replace("lock_timeout=1min", "lock_timeout=100ms")
    monkeypatch.setattr(storage, "_OPTIONS", options)


def retained(lane: Lane, *, dry_run: bool = False) -> dict[str, object]:
    [report] = retain(lane.database, [lane.name], dry_run=dry_run)
    return report


def test_the_decision_that_nothing_can_be_done_is_recorded_when_its_reason_changes(
    lane: Lane,
) -> None:
    assert retained(lane)["rule"] == "no_rule"
    retained(lane)
    assert decisions(lane) == ["no_rule"]
    first = Group.made(lane)
    lane.append({"0.0": 3})
    retained(lane)
    retained(lane)
    assert decisions(lane) == ["no_rule", "nothing_consumed"]
    Group.made(lane)  # now two hold it
    retained(lane)
    assert decisions(lane) == ["no_rule", "nothing_consumed", "nothing_consumed"]
    assert first.name


@pytest.mark.parametrize("changed", ["bound", "timed_out", "held_by", "reason"])
def test_each_part_of_a_decision_is_enough_to_record_it_anew(lane: Lane, changed: str) -> None:
    Group.made(lane)
    lane.append({"0.0": 3})
    retained(lane)
    other = {"bound": """{"0.0": 1}""", "timed_out": ["gone"], "held_by": ["gone"], "reason": "-"}
    run(
        lane.database,
        f"UPDATE retention_decision SET {changed} = :other WHERE stream_id = :s",
        other=other[changed], s=lane.stream_id,
    )  # fmt: skip
    retained(lane)
    retained(lane)
    assert decisions(lane) == ["nothing_consumed", "nothing_consumed"]


def test_a_truncation_is_recorded_with_what_it_freed(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": [3, 4], "1.0": 5})
    group.reader().read_all()
    group.checkpoint()
    report = retained(lane)
    assert (report["rule"], report["events"], report["bytes"], report["files"]) == (
        "consumed", 12, 120, 3,
    )  # fmt: skip
    [row] = lane.rows("SELECT * FROM retention_decision WHERE stream_id = :s")
    assert (row.head, row.cut, row.held_by) == (
        {"0.0": 0, "1.0": 0}, {"0.0": 7, "1.0": 5}, [group.name],
    )  # fmt: skip
    assert (row.events, row.bytes) == (12, 120)
    assert retained(lane)["rule"] == "nothing_consumed"


def test_what_is_released_is_what_was_checkpointed_not_what_was_read(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    group.reader().read_all()
    assert retained(lane)["rule"] == "nothing_consumed"
    group.checkpoint()
    assert retained(lane)["rule"] == "consumed"


def test_a_subscriber_in_the_middle_of_a_merge_releases_what_lies_before_it(lane: Lane) -> None:
    lane.append({"0.0": 4, "1.0": 4})
    group = Group.made(lane)
    a, b = group.reader("a"), group.reader("b")
    first, _ = a.must_open(), b.must_open()
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 5})
    a.commit(first)
    assert a.open() is None
    group.checkpoint()
    assert retained(lane)["cut"] == {"1.0": 0, merged: "future"}
    assert lane.head() == {"1.0": 0, merged: "future"}
    assert [f.events for f in lane.files()] == [4, 5]


def test_a_group_behind_the_head_does_not_hold_it_back_any_further(lane: Lane) -> None:
    lane.append({"0.0": 10})
    slow, fast = Group.made(lane), Group.made(lane)
    fast.reader().read_all()
    fast.checkpoint()
    lane.truncate("0.0=4, 1.0=0")  # by hand, past what the slow one has released
    report = retained(lane)
    assert (report["rule"], report["cut"]) == ("nothing_consumed", None)
    assert slow.name in str(report["reason"])
    assert lane.head() == {"0.0": 4, "1.0": 0}


def test_a_stream_without_the_switch_keeps_everything(database: Database) -> None:
    lane = Lane.made(database, retain_by_consumption=False)
    group = Group.made(lane)
    lane.append({"0.0": 3})
    group.reader().read_all()
    group.checkpoint()
    assert retained(lane)["rule"] == "no_rule"
    assert lane.head() == {"0.0": 0, "1.0": 0}


def test_one_stream_that_fails_does_not_stop_the_others(lane: Lane) -> None:
    broken, other = Lane.made(lane.database), Lane.made(lane.database)
    groups = [Group.made(one) for one in (lane, broken, other)]
    for one, group in zip((lane, broken, other), groups, strict=True):
        one.append({"0.0": 3})
        group.reader().read_all()
        group.checkpoint()
    run(
        lane.database,
        """UPDATE stream SET head = '{"9.9": 0}' WHERE stream_id = :s""",
        s=broken.stream_id,
    )
    reports = {report["stream"]: report for report in retain(lane.database)}
    assert "no segment 9.9" in reports[str(broken.name)]["error"]
    for one in (lane, other):
        assert reports[str(one.name)]["events"] == 3
        assert one.head() == {"0.0": 3, "1.0": 0}


def test_a_maximum_age_takes_nothing_that_is_younger_though_little_is_recorded(
    database: Database,
) -> None:
    lane = Lane.made(database, retain_max_age=10 * 86400)
    slow = Group.made(lane)
    for days in (7, 3):
        lane.append({"0.0": 1})
        capture(database)
        pass_time(lane, days * 86400 + 60)
    # The first is over ten days old, the second three; nothing was recorded in between.
    report = retained(lane)
    assert (report["rule"], report["cut"]) == ("max_age", {"0.0": 1, "1.0": 0})
    assert report["lost"] == {slow.name: 1}
    assert retained(lane)["rule"] == "nothing_consumed"
    pass_time(lane, 7 * 86400)
    assert retained(lane)["cut"] == {"0.0": 2, "1.0": 0}


def test_a_maximum_age_takes_nothing_that_is_younger_though_nothing_was_captured_for_a_while(
    database: Database,
) -> None:
    lane = Lane.made(database, retain_max_age=10 * 86400)
    slow = Group.made(lane)
    lane.append({"0.0": 1})
    capture(database)
    for day in range(1, 15):
        pass_time(lane, 86400 - 60)
        lane.append({"0.0": 1})
        if day == 6:
            lane.scale("1.0")
    capture(database)  # of 14 days
    report = retained(lane)
    assert (report["rule"], report["lost"]) == ("max_age", {slow.name: 4})
    assert lane.head() == {"0.0": 4, "1.0": 0}
    assert retained(lane)["cut"] is None


def test_a_stream_as_large_as_its_maximum_keeps_all_of_it(lane: Lane) -> None:
    run(lane.database, "UPDATE stream SET retain_max_bytes = 120")
    Group.made(lane)
    capture(lane.database)
    for events in (4, 8):
        lane.append({"0.0": events})
        capture(lane.database)
        assert retained(lane)["cut"] is None
    prune(lane.database, 0.0)
    assert retained(lane)["cut"] is None
    lane.append({"0.0": 1})
    capture(lane.database)
    assert retained(lane)["cut"] == {"0.0": 4, "1.0": 0}


def test_a_sealed_stream_is_not_due_any_more(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    group.reader().read_all()
    group.checkpoint()
    assert group.published() == {"0.0": 3, "1.0": 0}
    Group.made(lane)
    assert rows(lane.database, "SELECT * FROM retention_queue") == []


def test_a_dry_run_says_what_would_be_done_and_does_nothing(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    group.reader().read_all()
    group.checkpoint()
    before = rows(lane.database, "SELECT * FROM stream")
    report = retained(lane, dry_run=True)
    assert (report["rule"], report["cut"]) == ("consumed", {"0.0": 3, "1.0": 0})
    assert (report["events"], report["bytes"], report["files"]) == (3, 30, 1)
    assert rows(lane.database, "SELECT * FROM stream") == before
    assert rows(lane.database, "SELECT * FROM garbage") == []
    assert decisions(lane) == []


def consume(group: Group) -> None:
    """Read everything, and release it."""
    group.reader().read_all()
    group.checkpoint()


def test_what_the_slowest_subscriber_has_not_released_stays(lane: Lane) -> None:
    fast, slow = Group.made(lane), Group.made(lane)
    lane.append({"0.0": 3, "1.0": 4})
    consume(fast)
    (report,) = retain(lane.database)
    assert report["rule"] == "nothing_consumed"
    assert slow.name in report["reason"]
    assert fast.name not in report["reason"]
    consume(slow)
    (report,) = retain(lane.database)
    assert (report["rule"], report["events"], report["files"]) == ("consumed", 7, 2)
    assert lane.head() == {"0.0": 3, "1.0": 4}


def test_a_group_that_is_no_subscriber_holds_nothing_back_and_sees_what_it_lost(lane: Lane) -> None:
    subscriber, other = Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": 3, "1.0": 4})
    consume(subscriber)
    retain(lane.database)
    ((unread, lost),) = rows(
        lane.database,
        "SELECT unread_events, lost_events FROM lag WHERE reader_group = :g",
        g=other.name,
    )
    assert (unread, lost) == (0, 7)


def test_a_stream_of_which_nothing_has_changed_is_not_looked_at(lane: Lane) -> None:
    group = Group.made(lane)
    assert len(retain(lane.database)) == 1
    assert retain(lane.database) == []
    lane.append({"0.0": 3})
    capture(lane.database)
    assert [r["rule"] for r in retain(lane.database)] == ["nothing_consumed"]
    consume(group)
    assert [r["rule"] for r in retain(lane.database)] == ["consumed"]
    # Once more after a truncation, then not until something changes.
    assert [r["rule"] for r in retain(lane.database)] == ["nothing_consumed"]
    assert retain(lane.database) == []


def test_a_stream_is_looked_at_again_when_a_record_comes_of_age(database: Database) -> None:
    lane = Lane.made(database, retain_min_age=600)
    lane.append({"0.0": 3})
    capture(database)
    assert [r["rule"] for r in retain(database)] == ["too_little"]
    assert retain(database) == []
    [[due]] = rows(database, "SELECT due_at - clock_timestamp() FROM retention_queue")
    assert 590 < due.total_seconds() <= 600
    for table, column in (("stream_cut", "recorded_at"), ("retention_queue", "due_at")):
        run(database, f"UPDATE {table} SET {column} = {column} - interval '601 seconds'")
    [report] = retain(database)
    assert (report["rule"], report["cut"]) == ("min_age", {"0.0": 3, "1.0": 0})
    assert rows(database, "SELECT * FROM stream_cut") == []


def test_retention_is_not_decided_more_often_than_the_stream_wants(database: Database) -> None:
    lane = Lane.made(database, retention_every=600)
    group = Group.made(lane)
    retain(database)
    lane.append({"0.0": 3})
    consume(group)
    assert retain(database) == []
    run(database, "UPDATE stream SET retained_at = retained_at - interval '601 seconds'")
    assert [r["rule"] for r in retain(database)] == ["consumed"]


def test_a_laggard_that_the_maximum_overtakes_is_recorded_with_what_it_lost(
    database: Database,
) -> None:
    lane = Lane.made(database, retain_max_bytes=50)
    slow, fast, other = Group.made(lane), Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": [1, 1, 1, 1], "1.0": [1, 1]})
    reader = slow.reader()
    reader.commit(reader.must_open(budget=2))
    read = sum(slow.cut().values())
    assert 0 < read < 6
    capture(database)
    consume(fast)
    lane.append({"1.0": 5})
    capture(database)
    [report] = retain(database)
    assert (report["rule"], report["cut"]) == ("max_bytes", {"0.0": 4, "1.0": 2})
    assert report["lost"] == {slow.name: 6 - read}
    [row] = lane.rows("SELECT * FROM retention_decisions WHERE cut IS NOT NULL")
    assert (row.truncated_past, row.lost) == ([slow.name], {slow.name: 6 - read})
    assert row.events == 6
    assert other.name not in row.lost, "it is no subscriber"


@pytest.mark.parametrize("most", [100, 110, 120])
def test_a_subscriber_with_one_event_unread_keeps_it_where_the_limits_are_equal_or_close(
    database: Database, most: int
) -> None:
    lane = Lane.made(database, retain_min_bytes=100, retain_max_bytes=most)
    group = Group.made(lane)
    lane.append({"0.0": 5, "1.0": 9})
    reader = group.reader()
    assert reader.read_all() == [("0.0", 0, 5), ("1.0", 0, 9)]
    lane.append({"1.0": 1})
    capture(database)
    lane.append({"0.0": 11})
    capture(database)
    reader.commit(reader.must_open(until={lane.stream_id: {"0.0": 16, "1.0": 9}}))
    assert group.checkpoint() is not None
    assert group.published() == {"0.0": 16, "1.0": 9}
    [dry] = lane.rows("SELECT rule, cut, lost FROM retention_dry_run(:n)", n=str(lane.name))
    assert dry._asdict() == {"rule": "min_bytes", "cut": {"0.0": 5, "1.0": 9}, "lost": {}}
    report = retained(lane)
    assert (report["rule"], report["lost"]) == ("min_bytes", {})
    assert lane.head() == {"0.0": 5, "1.0": 9}


def test_two_runs_at_once_truncate_once(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    consume(group)
    found = at_once(lambda: retain(lane.database), lambda: retain(lane.database))
    rules = sorted(report["rule"] for reports in found for report in reports)
    assert rules in (["consumed"], ["consumed", "nothing_consumed"])
    assert decisions(lane).count("consumed") == 1


def test_a_stream_that_cannot_be_decided_does_not_stop_the_others(lane: Lane) -> None:
    broken = Lane.made(lane.database)
    run(
        lane.database,
        "UPDATE stream SET retain_min_age = 10000000000000 WHERE stream_id = :s",
        s=broken.stream_id,
    )
    reports = {report["stream"]: report for report in retain(lane.database)}
    assert reports[str(lane.name)]["rule"] == "no_rule"
    assert "out of range" in reports[str(broken.name)]["error"]


@pytest.mark.drawn(1)
@pytest.mark.parametrize("what", ["transactions", "streams of one group"])
def test_what_is_kept_locked_is_waited_for_once(
    lane: Lane, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Each for the whole patience would take longer than a periodic task may."""
    group = Group.made(lane, *[Lane.made(lane.database) for _ in range(5)])
    for _ in range(6):
        lane.opened(lease=0.0)
    be_hasty(monkeypatch)
    monkeypatch.setattr(storage, "_HURRIED", text("SET LOCAL lock_timeout = '50ms'"))
    hasty = test_database.open(patience=3.0)

    def holding(connection: Connection) -> None:
        if what == "transactions":
            lock_streams(connection, ids=[lane.stream_id])
        else:
            lock_group(connection, group.name)
        begun = time.monotonic()
        failed = expire_transactions(hasty, 0.0) if what == "transactions" else retain(hasty)
        took = time.monotonic() - begun
        assert len(failed) == 6
        assert all("has held a lock" in one["error"] for one in failed)
        assert 3 < took < 15, "each would take 18 seconds"

    lane.database.transaction(holding)
    hasty.dispose()


def test_a_stream_that_somebody_keeps_locked_does_not_stop_the_others(
    lane: Lane, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Lane.made(lane.database)
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
        assert f"stream {lane.name}: another session has held a lock" in stuck["error"]
        assert (pruned["stream"], pruned["segments"]) == (str(other.name), 1)

    lane.database.transaction(holding_still)
    assert [one["segments"] for one in prune(hasty, 0.0)] == [1]
    for one, group in zip((lane, other), groups, strict=True):
        one.opened("lapsed", lease=0.0)
        group.lapse("reader")

    def holding_what_lapsed(connection: Connection) -> None:
        lock_streams(connection, ids=[lane.stream_id])
        lock_group(connection, groups[0].name)
        for ends, what in ((expire_transactions, str(lane.name)), (expire, groups[0].name)):
            ended = ends(hasty, 0.0)
            assert len(ended) == 2
            [said] = [one["error"] for one in ended if "error" in one]
            assert f"{what}: another session has held a lock" in said

    lane.database.transaction(holding_what_lapsed)
    hasty.dispose()


def test_a_stream_that_is_named_and_can_not_be_decided_says_why(lane: Lane) -> None:
    nobody, sealed = stream_name("no/such"), Lane.made(lane.database)
    seal_stream(lane.database, sealed.name, request_id="seal")
    reports = retain(lane.database, [nobody, sealed.name, lane.name], dry_run=True)
    errors = [report.get("error", "") for report in reports]
    codes = [error.partition("[")[2] for error in errors]
    assert codes == ["stream_not_found]", "stream_not_active]", ""]
    assert f"{sealed.name} is sealed" in errors[1]
    [row] = lane.rows("SELECT * FROM retention_dry_run(:n)", n=str(sealed.name))
    assert (row.rule, row.cut, row.events) == ("sealed", None, 0)
