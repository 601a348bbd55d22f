"""What a reader may read next: `bounds_of_stream` against what the graph of segments allows."""

from random import Random

from hypothesis import given, settings

from tests.chance import cases
from tests.model.test_stream_cut import Remaining, Stream, positions, seeds, streams
from weir.model.bounds import Bound, Graph, SegmentState, bounds_of_stream, readable_until
from weir.model.segment import Segment, segment_id, segment_name
from weir.model.stream_cut import StreamCut, join


def states(stream: Stream) -> list[SegmentState]:
    """The segments as the database knows them."""
    sealed: dict[Segment, int] = {}
    for epoch, active in enumerate(stream.epochs):
        for segment in stream.segments:
            if segment.epoch < epoch and segment not in active:
                sealed.setdefault(segment, epoch)
    return [SegmentState(s, stream.sizes[s], sealed.get(s)) for s in sorted(stream.segments)]


def everything(_segment: Segment, _start: int, end: int) -> int:
    return end


def named(bounds: list[Bound]) -> list[tuple[str, int, int, bool]]:
    return [(segment_name(b.segment_id), b.start, b.end, b.completes) for b in bounds]


def plan(
    stream: Stream,
    owned: dict[Segment, int],
    waiting: list[Segment] | None = None,
    until: StreamCut | None = None,
    share: int | None = None,
) -> list[tuple[str, int, int, bool]]:
    graph = Graph(states(stream))
    return named(bounds_of_stream(1, owned, waiting or [], graph, until, everything, share))


def by_name(stream: Stream) -> dict[str, Segment]:
    return {s.name: s for s in stream.segments}


def test_a_batch_runs_into_all_successors_that_fit_its_share_or_none() -> None:
    stream = Stream(0, 8).scale(0, 4, 8)
    [first] = stream.epochs[0]
    assert len(plan(stream, {first: 0}, share=3)) == 3
    assert plan(stream, {first: 0}, share=2) == [("0.0", 0, 1, True)]
    stream = Stream(0, 4, 8).scale(0, 2, 4).scale(4, 6, 8)
    found = plan(stream, dict.fromkeys(stream.epochs[0], 0), share=4)
    assert [name for name, *_ in found] == ["0.0", "1.0", "2.1", "3.1"], "4.2 and 5.2 are beyond it"


def test_what_comes_after_a_successor_beyond_the_share_waits_too() -> None:
    stream = Stream(0, 4, 8).scale(0, 2, 4).scale(2, 8)
    left, right = stream.epochs[0]
    assert [s.name for s in stream.epochs[-1]] == ["2.1", "4.2"]
    stream.sizes[by_name(stream)["3.1"]] = 5  # too much, and one of the two before 4.2
    assert plan(stream, {left: 0, right: 0}, share=3) == [("0.0", 0, 1, True), ("1.0", 0, 1, True)]


@given(positions(2))
def test_readable_until_gives_the_events_before_the_cut(
    world: tuple[Stream, list[Remaining]],
) -> None:
    stream, [left, _] = world
    until = StreamCut(stream.listing(left))
    for state in states(stream):
        unread = [i for s, i in left if s == state.segment]
        expected = min(unread) if unread else state.end
        # Later segments and future ones begin after the cut.
        assert readable_until(until, state) == expected


@given(streams)
def test_successors_are_the_segments_whose_predecessor_it_is(stream: Stream) -> None:
    graph = Graph(states(stream))
    for segment in graph.states:
        expected = {s for s, before in stream.predecessors.items() if segment in before}
        assert graph.successors(segment) == sorted(expected, key=lambda s: s.key_low)


def possible(
    stream: Stream, left: Remaining, owned: dict[Segment, int], limit: dict[Segment, int]
) -> dict[Segment, tuple[int, int]]:
    """By brute force: what can be read from a frontier if only `owned` and what follows move."""
    read: dict[Segment, tuple[int, int]] = {}
    finished: set[Segment] = {s for s in stream.segments if s not in {t for t, _ in left}}
    ends = {s.segment: s for s in states(stream)}
    changed = True
    while changed:
        changed = False
        for segment in stream.segments:
            may = segment in owned or any(p in read for p in stream.predecessors[segment])
            if segment in read or segment in finished or not may:
                continue
            if not stream.predecessors[segment] <= finished:
                continue
            start = owned.get(segment, 0)
            end = max(start, limit[segment])
            read[segment] = (start, end)
            if ends[segment].sealed_epoch is not None and end == ends[segment].end:
                finished.add(segment)
            changed = True
    return read


@settings(max_examples=cases(300))
@given(positions(2), seeds)
def test_a_batch_reads_all_that_the_barriers_allow_and_no_more(
    world: tuple[Stream, list[Remaining]], seed: int
) -> None:
    stream, [left, other] = world
    random = Random(seed)
    cut = StreamCut(stream.listing(left))
    mine = {s: o for s, o in cut.present.items() if random.random() < 0.6}
    waiting = [s for s in cut.offsets if s not in mine]
    graph = Graph(states(stream))
    # Half of the runs stop somewhere ahead.
    stop = join(StreamCut(stream.listing(other)), cut) if random.random() < 0.5 else None
    limit = {s: readable_until(stop, state) for s, state in graph.states.items()}
    bounds = bounds_of_stream(1, mine, waiting, graph, stop, everything)
    expected = possible(stream, left, mine, limit)
    ends = graph.states
    assert {b.segment_id: (b.start, b.end, b.completes) for b in bounds} == {
        s.segment_id: (start, end, completes)
        for s, (start, end) in expected.items()
        for completes in [ends[s].sealed_epoch is not None and end == ends[s].end]
        if end > start or completes
    }
    # In an order in which no event comes before one of a predecessor.
    assert [b.segment_id for b in bounds] == sorted(b.segment_id for b in bounds)


def test_a_segment_whose_successors_are_not_in_sight_is_not_left() -> None:
    # The graph that one batch looks at is limited; what lies beyond must not be lost.
    first = Segment(segment_id(0, 0), 0.0, 1.0)
    left = Segment(segment_id(1, 5), 0.0, 0.5)
    graph = Graph([SegmentState(first, 4, 5), SegmentState(left, 2, None)])
    assert named(bounds_of_stream(1, {first: 0}, [], graph, None, everything)) == [
        ("0.0", 0, 4, False)
    ]
    assert bounds_of_stream(1, {first: 4}, [], graph, None, everything) == []
