"""Events that were truncated before a group read them: said, or counted and skipped."""

import re

import pytest

from tests.raises import raises
from tests.world.groups import Group, spans
from tests.world.streams import Lane, rows, run, unique
from weir.controller.missing import missing_of_bounds
from weir.controller.seal import seal_stream
from weir.reader_groups.batch import Batch
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.delete_stream import delete_stream


@pytest.fixture
def skipping(group: Group) -> Group:
    group.update(on_gap="skip")
    return group


def test_a_gap_is_said_with_its_count_and_nothing_moves(lane: Lane, group: Group) -> None:
    lane.truncate("0.0=3, 1.0=4")
    with raises("events_truncated 7 events 0.0=0, 1.0=0, 0.0=3 update_reader_group on_gap skip"):
        group.reader().open()
    assert group.cut() == {"0.0": 0, "1.0": 0}
    assert (group.lost(), group.batches()) == (0, [])


def said(lane: Lane, batch: Batch, events: int) -> str:
    bounds = [(b.segment_id, b.start, b.end) for b in batch.bounds]
    missing = lane.database.transaction(
        lambda c: missing_of_bounds(c, str(lane.name), lane.stream_id, bounds, events)
    )
    return str(missing).replace(f" of stream {lane.name}", "")


def test_what_an_open_batch_lost_is_said_with_the_truncation_that_took_the_last_of_it(
    lane: Lane, group: Group
) -> None:
    batch = group.reader().must_open()
    assert said(lane, batch, 1) == "1 event was truncated, longer ago than is recorded"
    lane.append({"0.0": 5, "1.0": 5})  # not of the batch
    names = []
    for head, lost in (("0.0=3, 1.0=0", 3), ("0.0=10, 1.0=10", 20), ("0.0=15, 1.0=12", 20)):
        lane.truncate(head)
        reason = lane.value(
            "SELECT reason FROM weir.truncations ORDER BY truncated_at DESC LIMIT 1"
        )
        names.append(reason)
        at = "[0-9: -]* UTC"
        of_it = reason if lost == 3 else names[1]
        assert re.fullmatch(
            rf"{lost} events were truncated, the last of them at {at} \({of_it}\)",
            said(lane, batch, lost),
        )
    assert len(set(names)) == 3


def test_the_truncation_of_a_batch_is_found_over_scales_and_after_their_metadata_is_pruned(
    lane: Lane, group: Group
) -> None:
    lane.scale("0.0", parts=2)
    lane.append({"1.0": 4, "2.1": 4, "3.1": 4})
    batch = group.reader().must_open()
    assert batch.events == 32
    for head in ("0.0=9, 1.0=0", "1.0=14, 2.1=4, 3.1=3", "1.0=14, 2.1=4, 3.1=4"):
        lane.truncate(head)
    order = "SELECT reason FROM weir.truncations WHERE stream = :s ORDER BY truncated_at"
    reasons = [f"({row[0]})" for row in rows(lane.database, order, s=str(lane.name))]
    for events, reason in zip((9, 31, 32), reasons, strict=True):
        assert said(lane, batch, events).endswith(reason)
    for table in ("time_index", "reader_group_segment", "segment"):
        wanted = f"DELETE FROM {table} WHERE stream_id = :s AND segment_id = 0"
        run(lane.database, wanted, s=lane.stream_id)
    assert said(lane, batch, 9).endswith(reasons[1]), "the oldest of which the segments are known"
    assert said(lane, batch, 32).endswith(reasons[2])


def test_a_group_that_is_reset_to_the_end_of_what_was_truncated_goes_on_at_the_head(
    lane: Lane, group: Group
) -> None:
    """Between the end of a segment and its successors lies no event, so nothing is lost."""
    group.reader().read_all()
    lane.scale("0.0", parts=2)
    lane.truncate("1.0=10, 2.1=0, 3.1=0")
    group.reader().read_all()
    reset_reader_group(
        group.database, group.name, "0.0=10, 1.0=10", allow_repeat=True,
        request_id=unique("reset"),
    )  # fmt: skip
    assert "0.0" in group.cut()
    assert group.reader().open() is None
    assert group.cut() == {"1.0": 10, "2.1": 0, "3.1": 0}
    assert group.lost() == 0


def test_a_group_leaves_a_stream_that_was_deleted_and_goes_on_with_the_others(lane: Lane) -> None:
    other = Lane.made(lane.database)
    lane.append({"0.0": 5})
    group = Group.made(other, lane)
    group.reader().read_all()
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    delete_stream(lane.database, lane.name, request_id=unique("delete"))
    Lane.made(lane.database, name=str(lane.name))
    other.append({"0.0": 3})
    with raises("stream_deleted group update_reader_group"):
        group.reader().open()
    update_reader_group(
        group.database, group.name, streams=[other.name], request_id=unique("update")
    )
    assert group.reader().read_all() == [("0.0", 0, 3)]


def test_a_gap_before_a_segment_that_waits_ends_in_the_join_of_both(
    lane: Lane, skipping: Group
) -> None:
    # The group has passed 1.0 and waits with the merged segment; the head has passed 0.0.
    a, b = skipping.reader("a"), skipping.reader("b")
    first, second = a.must_open(), b.must_open()
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 3})
    b.commit(second)
    assert spans(second) == [("1.0", 0, 10)]
    assert b.open() is None
    assert skipping.states()[merged] == ("future", None, None)
    lane.truncate(f"1.0=4, {merged}=future")
    a.commit(first, lost={lane.stream_id: 10})
    assert skipping.reader("a").read_all() == [(merged, 0, 3)]
    assert skipping.lost() == 10
