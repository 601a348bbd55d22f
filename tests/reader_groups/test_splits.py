"""A batch that is split: its halves are read in its place, by whoever holds it, in order."""

from hypothesis import given
from hypothesis import strategies as st

from tests.raises import raises
from tests.world.groups import Group, spans
from weir.model.bisection import halve
from weir.model.bounds import Bound
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.splits import split_batch


def split(group: Group, batch: Batch) -> None:
    split_batch(group.database, batch, "it failed")


def events(bounds: list[Bound]) -> list[tuple[int, int]]:
    return [(b.segment_id, offset) for b in bounds for offset in range(b.start, b.end)]


bounds = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20), st.booleans()), max_size=8).map(
    lambda found: [
        Bound(1, i, start, start + count, completes)
        for i, (start, count, completes) in enumerate(found)
    ]
)


@given(bounds.filter(lambda found: len(events(found)) >= 2))
def test_halves_are_about_equal_and_together_the_whole_in_its_order(whole: list[Bound]) -> None:
    first, rest = halve(whole)
    assert events(first) + events(rest) == events(whole)
    assert 0 <= len(events(rest)) - len(events(first)) <= 1
    # Each segment that is completed is so once, by what reads its end.
    ends = [(b.segment_id, b.end) for b in [*first, *rest] if b.completes]
    assert ends == [(b.segment_id, b.end) for b in whole if b.completes]


def test_halves_are_read_in_the_place_of_the_batch_that_was_split(group: Group) -> None:
    reader = group.reader()
    split(group, reader.must_open())
    first = reader.must_open()
    assert (first.batch_id, first.attempt, spans(first)) == (2, 1, [("0.0", 0, 10)])
    split(group, first)
    assert reader.read_all() == [("0.0", 0, 5), ("0.0", 5, 10), ("1.0", 0, 10)]
    assert group.cut() == {"0.0": 10, "1.0": 10}
    assert [(b.batch_id, b.state, b.events, b.error) for b in group.batches()] == [
        (1, "split", 20, "it failed"), (2, "split", 10, "it failed"), (3, "committed", 5, None),
        (4, "committed", 5, None), (5, "committed", 10, None),
    ]  # fmt: skip
    sizes = {b.batch_id: b.bytes for b in group.batches()}
    assert sizes[1] == sizes[2] + sizes[5]
    assert sizes[2] == sizes[3] + sizes[4]


def test_the_halves_are_taken_over_whole(group: Group) -> None:
    first = group.reader("a")
    split(group, first.must_open())
    half = first.must_open()
    group.lapse("a")
    heir = group.reader("b")
    taken = heir.must_open()
    assert (taken.batch_id, taken.bounds, taken.attempt) == (half.batch_id, half.bounds, 2)
    for zombie in (lambda: split(group, half), lambda: first.commit(half)):
        with raises(f"batch_taken_over batch {half.batch_id} 'a'"):
            zombie()
    heir.commit(taken)
    assert heir.read_all() == [("1.0", 0, 10)]


def test_a_part_pins_files_since_the_whole_was_opened(group: Group) -> None:
    reader = group.reader()
    split(group, reader.must_open())
    reader.commit(reader.must_open())
    assert len({b.opened_at for b in group.batches()}) == 1
