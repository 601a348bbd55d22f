"""The decision of retention, on streams of any shape, against a model that knows only events."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.controller.support import Lane, rows, run
from tests.reader_groups.support import Group
from tests.test_stream_cut import Remaining, Stream, cuts, positions
from weir.retention.capture import capture
from weir.retention.decision import decide
from weir.retention.run import retain
from weir.storage import Database
from weir.stream_cut import StreamCut, at_or_before

NAMES = ["a", "b", "c", "d"]


@settings(max_examples=300)
@given(positions(5), st.integers(1, 4))
def test_the_cut_is_what_all_subscribers_released_and_never_behind_the_head(
    world: tuple[Stream, list[Remaining]], count: int
) -> None:
    stream, [left, *others] = world
    released = dict(zip(NAMES, others[:count], strict=False))
    head, *given_ = cuts(stream, [left, *released.values()])
    decision = decide(head, dict(zip(released, given_, strict=True)), by_consumption=True)
    # What somebody has not released, and the head has not passed anyway.
    kept = frozenset().union(*[one & left for one in released.values()])
    assert decision.bound == StreamCut(stream.listing(kept))
    assert at_or_before(head, decision.bound)
    if kept == left:
        assert (decision.cut, decision.rule) == (None, "nothing_consumed")
    else:
        assert (decision.cut, decision.rule) == (decision.bound, "consumed")
    holding = [
        name
        for name in released
        if len(released) > 1
        and frozenset().union(*[o & left for n, o in released.items() if n != name]) != kept
    ]
    # Where several hold it back together, nobody does alone: then all are named.
    assert list(decision.held_by) == (holding or sorted(released))
    assert all(name in decision.reason for name in decision.held_by)


@given(positions(3))
def test_without_subscribers_or_without_the_switch_nothing_is_truncated(
    world: tuple[Stream, list[Remaining]],
) -> None:
    stream, found = world
    head, a, b = cuts(stream, found)
    none = decide(head, {}, by_consumption=True)
    off = decide(head, {"a": a, "b": b}, by_consumption=False)
    for decision in (none, off):
        assert (decision.cut, decision.bound, decision.rule) == (None, None, "no_rule")
        assert decision.held_by == ()


def decisions(lane: Lane) -> list[str]:
    found = lane.rows(
        "SELECT rule FROM retention_decision WHERE stream_id = :s ORDER BY decided_at"
    )
    return [row.rule for row in found]


@pytest.fixture
def lane(database: Database) -> Lane:
    """A stream in a database of its own: retention serves all streams."""
    return Lane.made(database)


def retained(lane: Lane, *, dry_run: bool = False) -> dict[str, object]:
    [report] = [r for r in retain(lane.database, dry_run=dry_run) if r["stream"] == str(lane.name)]
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


def test_a_dry_run_says_what_would_be_done_and_does_nothing(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3})
    group.reader().read_all()
    group.checkpoint()
    before = rows(lane.database, "SELECT * FROM stream")
    report = retained(lane, dry_run=True)
    assert (report["rule"], report["cut"]) == ("consumed", {"0.0": 3, "1.0": 0})
    assert rows(lane.database, "SELECT * FROM stream") == before
    assert rows(lane.database, "SELECT * FROM garbage") == []
    assert decisions(lane) == []


def test_captured_cuts_are_tails_with_their_sizes(lane: Lane) -> None:
    random = Random(1)
    seen = []
    for _ in range(5):
        active = lane.active()
        lane.append({random.choice(active): random.randint(1, 5)})
        if random.random() < 0.5:
            lane.scale(random.choice(active))
        [captured] = capture(lane.database)
        assert captured["cut"] == lane.tail()
        assert captured["events"] == sum(lane.sizes().values())
        assert captured["bytes"] == 10 * captured["events"]
        seen.append(captured["cut"])
    recorded = lane.rows("SELECT cut FROM stream_cut WHERE stream_id = :s ORDER BY recorded_at")
    assert [row.cut for row in recorded] == seen


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


def test_the_tail_is_captured_only_when_it_moved(lane: Lane) -> None:
    assert len(capture(lane.database)) == 1
    assert capture(lane.database) == []
    lane.append({"0.0": 3})
    (captured,) = capture(lane.database)
    assert (captured["cut"], captured["events"]) == ({"0.0": 3, "1.0": 0}, 3)
