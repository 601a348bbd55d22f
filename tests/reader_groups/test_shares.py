"""What readers of a group take of it: by what there is to read, and how far it is behind."""

import pytest

from tests.world.groups import Group, spans
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.model.segment import segment_name
from weir.reader_groups.locks import lock_group
from weir.reader_groups.positions import read_lags


@pytest.fixture
def four(shared_database: Database) -> Lane:
    """A stream of four segments."""
    return Lane.made(shared_database, segments=4)


def lags(group: Group) -> dict[str, int]:
    """Per segment how far its position is behind, in microseconds."""
    found = group.database.transaction(lambda c: read_lags(c, lock_group(c, group.name)))
    return {segment_name(segment_id): lag for (_, segment_id), lag in found.items()}


def test_the_first_of_three_expected_readers_takes_a_third(four: Lane) -> None:
    four.append({"0.0": 60, "1.0": 20, "2.0": 40, "3.0": 60})
    group = Group.made(four)
    taken = [
        {name for name, _, _ in spans(group.reader(reader).must_open(expected=3))}
        for reader in ("a", "b", "c")
    ]
    assert taken == [{"0.0"}, {"3.0"}, {"1.0", "2.0"}]


def test_readers_share_what_lies_before_the_end_of_the_group(four: Lane) -> None:
    four.append({"0.0": 30, "1.0": 10, "2.0": 10, "3.0": 10})
    group = Group.made(four, end="tail")
    four.append({"1.0": 1000})
    taken = [
        {name for name, _, _ in spans(group.reader(reader).must_open(expected=2))}
        for reader in ("a", "b")
    ]
    assert taken == [{"0.0"}, {"1.0", "2.0", "3.0"}]


def test_the_first_batch_of_a_reader_is_small_if_several_share_a_backlog(four: Lane) -> None:
    for _ in range(20):
        four.append(dict.fromkeys(four.active(), 2))

    def first(budget: int, expected: int) -> int:
        return Group.made(four).reader().must_open(budget, expected=expected, first=True).events

    assert (first(32, expected=2), first(32, expected=1)) == (4, 32)
    assert first(80, expected=2) == 80, "all of its share fits"


def test_after_a_scale_no_reader_takes_what_follows_from_the_others(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, segments=1)
    lane.append({"0.0": 1})
    after = lane.scale("0.0", parts=8)
    lane.append(dict.fromkeys(after, 1000))
    group = Group.made(lane)
    readers = [group.reader(name) for name in "abc"]
    first = readers[0].must_open(expected=3)
    assert spans(first) == [("0.0", 0, 1)]
    readers[0].commit(first)
    shares = [reader.must_open(expected=3) for reader in readers]
    assert sorted(batch.events for batch in shares) == [2000, 3000, 3000]


def test_a_batch_runs_on_over_many_scales_as_far_as_its_share_goes(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, segments=1)
    lane.append({"0.0": 1})
    for _ in range(29):
        [follows] = lane.scale(*lane.active(), parts=1)
        lane.append({follows: 1})
    group = Group.made(lane)
    first, other = group.reader("first"), group.reader("other")
    batch = first.must_open(expected=2)
    assert batch.events == 15, "half of the thirty"
    assert other.open(expected=2) is None, "it follows what the first one reads"
    first.commit(batch)
    other.leave()
    assert first.must_open().events == 15, "who is alone reads on to the end"


def test_a_segment_weighs_what_follows_it_too(four: Lane) -> None:
    low, high = four.scale("0.0")  # nothing was written to it before
    four.append({low: 50, high: 40, "1.0": 30, "2.0": 30, "3.0": 30})
    group = Group.made(four)
    a, b = group.reader("a"), group.reader("b")
    first, second = a.must_open(expected=2), b.must_open(expected=2)
    assert sorted(spans(first)) == [(low, 0, 50), (high, 0, 40)]
    assert sorted(spans(second)) == [("1.0", 0, 30), ("2.0", 0, 30), ("3.0", 0, 30)]


def test_readers_share_what_is_furthest_behind(four: Lane) -> None:
    four.append({"0.0": 5, "2.0": 5})
    four.append({"1.0": 5, "3.0": 5})
    group = Group.made(four)
    batch = group.reader("a").must_open(expected=2)
    assert len({name for name, _, _ in spans(batch)} & {"0.0", "2.0"}) == 1


def test_lag_is_the_clock_of_the_tail_less_that_of_the_first_unread_event(four: Lane) -> None:
    clocks = [four.append({"0.0": 2, name: 2}).clock for name in ("1.0", "2.0", "3.0")]
    group = Group.made(four, start="0.0=3, 1.0=2, 2.0=0, 3.0=1")
    last = clocks[-1]
    assert lags(group) == {"0.0": last - clocks[1], "2.0": last - clocks[1], "3.0": 0}
    low, high = four.scale("1.0")
    scaled, last = last, four.append({low: 1, high: 1}).clock
    found = lags(group)
    assert found["3.0"] == last - scaled
    assert 0 < found["1.0"] < found["3.0"]  # it is read, what follows it is not
    reader = group.reader()
    reader.read_all()
    assert lags(group) == {}
