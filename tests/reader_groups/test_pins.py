"""Key ranges that are pinned to readers."""

from typing import Any

import pytest

from tests.raises import raises
from tests.world.groups import Group, Reader, spans
from tests.world.streams import Lane, unique
from weir.database.connection import Database
from weir.model.key_space import KeyRange
from weir.model.names import stream_name
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.groups.update import update_reader_group


def pin(group: Group, *pins: str, **changes: Any) -> None:
    """Pin ranges of the first stream, each written as `low..high label`."""
    update_reader_group(
        group.database, group.name, request_id=unique("pin"),
        pins=[Pin.parse(f"{group.lanes[0].name} {one}") for one in pins], **changes,
    )  # fmt: skip


def read(reader: Reader, **options: Any) -> list[str]:
    """The segments of a reader's next batch, which is committed."""
    batch = reader.open(**options)
    if batch is None:
        return []
    reader.commit(batch)
    return [name for name, _, _ in spans(batch)]


@pytest.fixture
def four(shared_database: Database) -> Lane:
    """A stream of four segments with equally much in each."""
    lane = Lane.made(shared_database, segments=4)
    lane.append({f"{i}.0": [5, 5, 5] for i in range(4)})
    return lane


def test_a_pin_is_a_stream_a_range_of_keys_and_a_label() -> None:
    one = Pin.parse("nyc/flights 0.25..0.5 big-1")
    assert one == (stream_name("nyc/flights"), KeyRange(0.25, 0.5), "big-1")
    assert Pin.parse(str(one)) == one
    assert Pin.parse(" nyc/flights  0..1e-3 0 ").keys == KeyRange(0.0, 0.001)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nyc/flights 0.25 big", "argument_invalid label"),
        ("nyc/flights 0.25..0.5", "argument_invalid label"),
        ("nyc/flights 1.2.3..4 big", "argument_invalid label"),
        ("nyc/flights 0.5..0.25 big", "argument_invalid lower"),
        ("nyc/flights 0.5..1.5 big", "argument_invalid lower"),
        ("flights 0..0.5 big", "name_invalid stream"),
        ("nyc/flights 0..0.5 b?g", "name_invalid label"),
    ],
)
def test_what_is_no_pin_is_refused(text: str, says: str) -> None:
    with raises(says):
        Pin.parse(text)


def test_a_pinned_range_is_read_by_the_reader_of_its_label(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0.5..0.75 big")
    small, big = group.reader("a"), group.reader("b", label="big")
    batches = [reader.must_open() for reader in (small, big)]
    assert [spans(b) for b in batches] == [
        [("0.0", 0, 15), ("3.0", 0, 15)], [("1.0", 0, 15), ("2.0", 0, 15)],
    ]  # fmt: skip
    for reader, batch in zip((small, big), batches, strict=True):
        reader.commit(batch)
    # What is pinned counts: whoever has much of it gets less of the rest.
    four.append({"0.0": 1, "1.0": 1, "2.0": 30, "3.0": 1})
    assert spans(small.must_open()) == [("0.0", 15, 16), ("3.0", 15, 16)]
    assert spans(big.must_open()) == [("2.0", 15, 45)]


def test_while_the_pinned_reader_is_not_there_others_share_its_range(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0..0.5 big")
    a = group.reader("a")
    batch = a.must_open(budget=20)
    assert [name for name, _, _ in spans(batch)] == ["0.0", "1.0", "2.0", "3.0"]
    # It comes while a batch is open on its range, and gets it as soon as that is committed.
    big = group.reader("b", label="big")
    assert big.open() is None
    a.commit(batch)
    assert read(a, budget=10) == ["2.0", "3.0"]
    assert read(big, budget=10) == ["0.0", "1.0"]
    # It dies; its range goes on being read.
    group.lapse("b")
    assert set(read(a)) == {"0.0", "1.0", "2.0", "3.0"}


def test_a_reader_that_is_expected_may_be_the_one_that_is_pinned(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0..0.25 1", "0.25..0.5 1")
    first, second = group.reader("task/0", label="0"), group.reader("task/1", label="1")
    second.leave()
    assert read(first, expected=2) == ["2.0", "3.0"]
    second = group.reader("task/1", label="1")
    assert read(second, expected=2) == ["0.0", "1.0"]


def test_what_is_pinned_to_nobody_who_comes_is_read_in_the_end(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0..1 nobody")
    reader = group.reader()
    assert sum(end - start for _, start, end in reader.read_all(20, expected=3)) == 60


def test_several_readers_of_one_label_share_its_range(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0..0.75 big")
    readers = [group.reader(name, label) for name, label in [("a", "big"), ("b", ""), ("c", "big")]]
    taken = {r.reader_id: {name for name, _, _ in spans(r.must_open())} for r in readers}
    assert taken["b"] == {"3.0"}
    assert {len(taken["a"]), len(taken["c"])} == {1, 2}


def test_a_segment_of_two_pins_goes_to_the_one_with_more_of_its_keys(four: Lane) -> None:
    group = Group.made(four)
    pin(group, "0..0.6 a", "0.6..1 b")
    a, b = group.reader("a", "a"), group.reader("b", "b")
    assert (read(a), read(b)) == (["0.0", "1.0"], ["2.0", "3.0"])
    low, high = four.scale("2.0")  # now the boundary lies in the first of them
    four.append({low: 5, high: 5})
    assert (read(a), read(b)) == ([], [high])
    assert read(a) == [low]
    [merged] = four.scale("1.0", low, parts=1)
    four.append({merged: 1})
    assert (read(b), read(a)) == ([], [merged])


def test_pins_are_part_of_the_configuration(four: Lane) -> None:
    other = Lane.made(four.database)
    group = Group.made(four, other)
    pin(group, "0.5..1 b", "0..0.25 a", generation=0)

    def pins() -> list[tuple[Any, ...]]:
        found = group.rows(
            """SELECT stream, key_low, key_high, label, readers FROM pins
            WHERE reader_group = :name ORDER BY key_low""",
            name=group.name,
        )
        return [tuple(row) for row in found]

    group.reader("x", "a")
    expected = [(str(four.name), 0, 0.25, "a", ["x"]), (str(four.name), 0.5, 1, "b", [])]
    assert pins() == expected
    with raises("group_changed 1 0"):
        pin(group, generation=0)
    with raises("argument_invalid 0.0..0.5 a 0.4..0.6 b overlap"):
        pin(group, "0..0.5 a", "0.4..0.6 b")
    elsewhere = Pin.parse("test/elsewhere 0..1 a")
    with raises("group_unsuitable reader test/elsewhere"):
        update_reader_group(four.database, group.name, pins=[elsewhere], request_id=unique("r"))
    update_reader_group(four.database, group.name, on_gap="skip", request_id=unique("r"))
    assert pins() == expected
    # With a stream that the group leaves its pins go.
    update_reader_group(four.database, group.name, streams=[other.name], request_id=unique("r"))
    assert pins() == []


def test_a_label_that_is_none_is_refused(four: Lane) -> None:
    with raises("name_invalid 'big one' label"):
        Group.made(four).reader("a", "big one")
