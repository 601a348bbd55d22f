"""A truncation by hand: at places that people know, and first as a dry run."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.retention.manual_truncation import Truncation, in_words, truncate_before


def truncated(lane: Lane, place: str, group: str = "", dry_run: bool = False) -> Mapping[str, Any]:
    return truncate_before(
        lane.database, lane.name, place, group, dry_run=dry_run, request_id=unique("truncate")
    )


def everything(lane: Lane) -> list[Any]:
    """What a truncation changes."""
    return [
        lane.rows("SELECT * FROM stream WHERE stream_id = :s"),
        lane.rows("SELECT * FROM data_file WHERE stream_id = :s ORDER BY path"),
        lane.rows("SELECT * FROM garbage WHERE stream_id = :s"),
        lane.rows("SELECT * FROM request WHERE object = :name", name=str(lane.name)),
    ]


@pytest.fixture
def read(lane: Lane) -> tuple[Lane, Group, Group]:
    """A stream, a subscriber that has read some of it, and another group that has read nothing."""
    subscriber, other = Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": 5, "1.0": 5})
    subscriber.reader().read_all()
    subscriber.checkpoint("noon")
    lane.append({"0.0": 3})
    subscriber.reader().read_all()
    lane.append({"1.0": 2})
    return lane, subscriber, other


def test_a_dry_run_counts_what_the_truncation_then_deletes_and_changes_nothing(
    read: tuple[Lane, Group, Group],
) -> None:
    lane, subscriber, other = read
    before = everything(lane)
    asked = truncated(lane, "tail", dry_run=True)
    assert everything(lane) == before
    assert asked["lost"] == {subscriber.name: 2}
    assert asked["lost_to_others"] == {other.name: 15}
    assert (asked["events"], asked["files"]) == (15, 4)
    assert truncated(lane, "tail") == asked
    assert lane.rows("SELECT * FROM data_file WHERE stream_id = :s") == []


def test_a_dry_run_at_a_time_does_not_close_it(read: tuple[Lane, Group, Group]) -> None:
    lane, _, _ = read
    before = everything(lane)
    asked = truncated(lane, f"time {datetime.now(UTC).isoformat()}", dry_run=True)
    assert asked["events"] == 15
    assert everything(lane) == before


@pytest.mark.parametrize(
    ("place", "of_group", "head"),
    [
        ("position", True, {"0.0": 8, "1.0": 5}),
        (" checkpoint noon ", True, {"0.0": 5, "1.0": 5}),
        ("tail", False, {"0.0": 8, "1.0": 7}),
        ("head", False, {"0.0": 0, "1.0": 0}),
        ("0.0=1, 1.0=2", False, {"0.0": 1, "1.0": 2}),
    ],
)
def test_a_place_may_be_one_that_people_know(
    read: tuple[Lane, Group, Group], place: str, of_group: bool, head: dict[str, int]
) -> None:
    lane, subscriber, _ = read
    assert truncated(lane, place, subscriber.name if of_group else "")["head"] == head


def test_a_place_of_a_group_needs_the_group_and_no_other_place_has_one(
    read: tuple[Lane, Group, Group],
) -> None:
    lane, subscriber, _ = read
    for place in ("position", "checkpoint noon"):
        with raises(f"position_invalid '{place}'"):
            truncated(lane, place)
        with raises("group_not_found nobody"):
            truncated(lane, place, "nobody")
    with raises("checkpoint_not_found 'noon'"):
        truncated(lane, "checkpoint noon", Group.made(lane).name)
    with raises("position_invalid 'tail' position"):
        truncated(lane, "tail", subscriber.name)


def test_what_a_dry_run_says_and_what_was_done_are_whole_sentences() -> None:
    done: Truncation = {
        "stream": "shop/orders", "already": "", "events": 1500, "bytes": 2000, "files": 3,
        "head": {"0.0": 12}, "lost": {"totals": 7}, "lost_to_others": {"audit": 1000},
    }  # fmt: skip
    assert in_words(done, dry_run=True) == [
        "would truncate 1,500 events of stream shop/orders (2,000 bytes; 3 whole files); its head "
        "would be 0.0=12",
        "subscriber totals would lose 7 events that it has not read",
        "reader group audit would lose 1,000 events that it has not read",
        "nothing was truncated; to do it, pass dry_run=False",
    ]
    assert in_words({**done, "lost": {}, "lost_to_others": {}}, dry_run=False) == [
        "truncated 1,500 events of stream shop/orders (2,000 bytes; 3 whole files); its head is "
        "0.0=12",
        "no reader group lost an event that it has not read",
    ]
