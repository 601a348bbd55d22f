"""Creating, scaling and truncating streams by hand."""

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.controller.scale import scale


def test_a_segment_that_never_was_is_not_taken_for_one_of_the_same_number(lane: Lane) -> None:
    lane.append({"0.0": 5})
    before = lane.active()
    for never in ("0.7", "1.1", "0.3"):
        with raises(f"segment_not_active {never}"):
            lane.scale(never)
    assert lane.active() == before
    lane.scale("0.0")
    with raises("segment_not_active 0.0"):
        lane.scale("0.0")


@pytest.mark.parametrize("parts", [0, 1_000_000_000])
def test_a_split_into_more_parts_than_a_stream_may_have_is_refused_at_once(
    lane: Lane, parts: int
) -> None:
    with raises(f"argument_invalid parts {parts} 10000"):
        lane.scale("1.0", parts=parts)


def test_segments_that_are_no_neighbours_are_scaled_at_once(lane: Lane) -> None:
    lane = Lane.made(lane.database, segments=8)
    assert lane.scale("0.0", "4.0", parts=2) == ["8.1", "9.1", "10.1", "11.1"]
    assert len(lane.epochs()) == 2
    assert lane.scale("1.0", "2.0", "5.0", "6.0", parts=1) == ["12.2", "13.2"]
    assert [(e.splits, e.merges) for e in lane.epochs()] == [(0, 0), (2, 0), (2, 2)]
    assert lane.active() == ["8.1", "9.1", "12.2", "3.0", "10.1", "11.1", "13.2", "7.0"]


def test_a_truncation_by_hand_says_who_loses_what(
    lane: Lane, caplog: pytest.LogCaptureFixture
) -> None:
    lane.append({"0.0": [3, 3], "1.0": [4]})
    cut = "0.0=0, 1.0=0"
    slow, fast = Group.made(lane, start=cut), Group.made(lane, start=cut)
    Group.made(lane, start=cut, subscriber=False)
    fast.reader().read_all()
    lost = {slow.name: 4}
    assert lane.truncate("0.0=4, 1.0=0")["lost"] == lost
    [row] = lane.rows(
        "SELECT result FROM requests WHERE operation = 'truncate' AND object = :n", n=str(lane.name)
    )
    assert row.result["lost"] == lost
    said = f"subscriber {slow.name} loses 4 unread events of stream {lane.name} (truncated by hand)"
    assert said in caplog.text
    assert lane.truncate("0.0=4, 1.0=0")["lost"] == {}


@pytest.mark.parametrize(
    ("cut", "why"),
    [
        ("0.0=9, 1.0=0", "cut_invalid 0.0"),  # beyond the tail
        ("0.0=1", "cut_invalid 1 predecessors"),  # does not cover the key space
        ("0.0=2, 1.0=1", "position_invalid 0.0 head"),
        ("7.7=1, 0.0=3, 1.0=1", "cut_invalid 7.7 because"),
        ("nonsense", "cut_invalid nonsense"),
    ],
)
def test_a_cut_that_is_not_valid_or_goes_back_is_refused(lane: Lane, cut: str, why: str) -> None:
    lane.append({"0.0": 3, "1.0": 4})
    lane.truncate("0.0=3, 1.0=1")
    with raises(why):
        lane.truncate(cut)
    assert lane.head() == {"0.0": 3, "1.0": 1}


def test_why_somebody_scaled_is_kept(lane: Lane) -> None:
    scale(lane.database, lane.name, seal=["0.0"], reason="Monday is too long", request_id="by hand")
    [row] = lane.rows("SELECT * FROM epoch_transition WHERE stream = :n AND epoch = 1",
                      n=str(lane.name))  # fmt: skip
    assert (row.cause, row.reason, row.request_id) == ("scale", "Monday is too long", "by hand")
