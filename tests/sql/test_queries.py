"""What can be asked about a stream, on random histories: beside a model that keeps every event, and
beside the rules of stream cuts in Python."""

from datetime import datetime

import pytest

from tests.chance import random_for
from tests.controller.driver import Driver
from tests.controller.model import as_json
from tests.raises import raises
from tests.sql.history import TICK, History
from tests.world import questions as queries
from tests.world.streams import Lane
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.segment import segment_name
from weir.model.stream_cut import at_or_before
from weir.retention.capture import capture, recorded_cut

# Segments and epochs.


def test_active_segments_are_those_of_the_epoch_with_what_can_still_be_read(
    history: History,
) -> None:
    model = history.model
    times = history.epoch_times()
    asked: list[tuple[datetime | None, int]] = [(None, len(times) - 1)]
    asked += [(at, epoch) for epoch, at in enumerate(times)]
    for at, epoch in asked:
        rows = history.ask(queries.active_segments, at)
        assert {
            (row.segment_id, row.segment, row.key_low, row.key_high, row.first_offset)
            for row in rows
        } == {
            (s, segment_name(s), *history.segments()[s][1:], offset)
            for s, offset in model.active_at(epoch).items()
        }
        assert [row.key_low for row in rows] == sorted(row.key_low for row in rows)


def test_a_sealed_stream_has_active_segments_at_times_before_it_was_sealed(
    histories: Database,
) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 3})
    asked = History(Driver(histories, segments=2), random_for("sealed"))
    asked.driver.lane = lane
    created = asked.epoch_times()[0]
    seal_stream(histories, lane.name, request_id="seal")
    sealed_at = lane.value("SELECT clock_time(sealed_clock) FROM stream WHERE stream_id = :s")
    assert asked.ask(queries.active_segments) == []
    assert asked.ask(queries.active_segments, sealed_at) == []
    for at in (created, sealed_at - TICK):
        rows = asked.ask(queries.active_segments, at)
        assert [row.segment for row in rows] == ["0.0", "1.0"]
    assert asked.ask(queries.successors, "0.0") == {}
    assert asked.ask(queries.stream_cut_at, sealed_at) == {"0.0": 3, "1.0": 0}


def test_the_epoch_at_a_time_is_the_last_one_created_by_then(history: History) -> None:
    times = history.epoch_times()
    for at in history.moments():
        expected = max((e for e, created in enumerate(times) if created <= at), default=0)
        assert history.ask(queries.epoch_at, at) == expected


def test_scale_metadata_tells_epoch_by_epoch_what_was_split_and_merged(history: History) -> None:
    model, times, segments = history.model, history.epoch_times(), history.segments()
    first, last = sorted(history.random.choices(range(len(times)), k=2))
    changes = model.splits_and_merges()
    rows = history.ask(queries.scale_metadata, times[first], times[last] + TICK)
    assert [row.epoch for row in rows] == list(range(first, last + 1))
    for row in rows:
        assert row.created_at == times[row.epoch]
        assert row.segments == {
            segment_name(s): list(segments[s][1:]) for s in model.epochs[row.epoch]
        }
        before = row.epoch - (row.epoch > first)  # the first one shown counts nothing
        assert (row.splits, row.merges) == tuple(
            now - then for now, then in zip(changes[row.epoch], changes[before], strict=True)
        )
    if first < last:
        assert history.ask(queries.scale_metadata, times[last], times[first]) == []


def test_successors_and_predecessors_are_the_edges_of_the_graph(history: History) -> None:
    model = history.model

    def names(segments: set[int]) -> list[str]:
        return [segment_name(s) for s in sorted(segments)]

    for s in model.segments:
        assert history.ask(queries.successors, segment_name(s)) == {
            segment_name(n): names(model.predecessors(n)) for n in model.successors(s)
        }
        assert history.ask(queries.predecessors, segment_name(s)) == {
            segment_name(p): names(model.successors(p)) for p in model.predecessors(s)
        }


# Cuts.


def test_segments_between_two_cuts_are_what_a_reader_passes(history: History) -> None:
    model = history.model
    for start, end in history.pairs(12):
        if not model.behind(start, end):
            with raises("position_invalid earlier"):
                history.ask(queries.segments_between, as_json(start), as_json(end))
            continue
        rows = history.ask(queries.segments_between, as_json(start), as_json(end))
        assert [(r.segment_id, r.from_offset, r.to_offset) for r in rows] == [
            (s, first, past) for s, (first, past) in model.between(start, end).items()
        ]
        assert all((r.key_low, r.key_high) == history.segments()[r.segment_id][1:] for r in rows)
        size = history.ask(queries.size_between, as_json(start), as_json(end))
        assert size.events == sum(r.to_offset - r.from_offset for r in rows)


def test_without_cuts_segments_between_are_those_from_the_head_to_the_tail(
    history: History,
) -> None:
    rows = history.ask(queries.segments_between)
    expected = history.model.between(history.model.head, history.model.tail())
    assert {r.segment_id: (r.from_offset, r.to_offset) for r in rows} == expected


def test_sizes_are_those_of_the_events_that_were_counted(history: History) -> None:
    for a, b in history.pairs(8):
        before, after = history.model.size_till(a), history.model.size_till(b)
        assert history.ask(queries.size_till, as_json(a)) == before
        assert history.ask(queries.size_between, as_json(a), as_json(b)) == (
            after[0] - before[0], after[1] - before[1],
        )  # fmt: skip


def test_the_span_of_a_cut_is_the_last_epoch_of_each_of_its_segments(history: History) -> None:
    for cut in history.frontiers(12):
        assert history.ask(queries.span, as_json(cut)) == {
            segment_name(s): epoch for s, epoch in history.model.span(cut).items()
        }


def test_the_cut_at_a_time_is_where_the_tail_was_or_the_head(history: History) -> None:
    model, times, commits = history.model, history.epoch_times(), history.commit_times()
    for at in history.moments():
        epoch = max((e for e, created in enumerate(times) if created <= at), default=0)
        tail = model.tail_at(epoch, {order for order, time in commits.items() if time <= at})
        found = history.ask(queries.stream_cut_at, at)
        assert found == as_json(model.join(tail, model.head))


@pytest.mark.parametrize("distance", [1, 5, 1000])
def test_the_next_cut_moves_every_segment_by_its_share(history: History, distance: int) -> None:
    model = history.model
    for cut in [*history.frontiers(8), model.head]:
        if model.join(cut, model.head) != cut:
            with raises("events_truncated"):
                history.ask(queries.next_cut, as_json(cut), distance)
            cut = model.join(cut, model.head)
        found = history.ask(queries.next_cut, as_json(cut), distance)
        assert found == as_json(history.model.next_cut(cut, distance))


def test_going_from_next_cut_to_next_cut_reads_everything_once(history: History) -> None:
    distance = history.random.randint(1, 20)
    cut, tail = as_json(history.model.head), as_json(history.model.tail())
    read: dict[str, int] = {}
    while cut != tail:
        following = history.ask(queries.next_cut, cut, distance)
        history.check_valid(following)
        assert following != cut
        rows = history.ask(queries.segments_between, cut, following)
        # Each segment gives an event at least, and a merge continues the shares of those before it.
        events = sum(r.to_offset - r.from_offset for r in rows)
        assert events <= distance + max(len(cut), len(following))
        for r in rows:
            assert r.from_offset == read.get(r.segment, r.from_offset)
            read[r.segment] = r.to_offset
        cut = following
    assert history.ask(queries.next_cut, tail, distance) == tail
    everything = history.model.between(history.model.head, history.model.tail())
    assert read == {segment_name(s): past for s, (_, past) in everything.items()}


def test_the_recorded_cut_at_a_time_is_the_newest_of_the_retention_set(histories: Database) -> None:
    asked = History(Driver(histories, segments=2), random_for("recorded"))
    recorded = []
    for _ in range(3):
        before = asked.lane.tail()
        while asked.lane.tail() == before:  # what is drawn may be a scale and an append of nothing
            asked.driver.scale(asked.random)
            asked.driver.append(asked.random)
        capture(histories)
        at = asked.lane.value("SELECT max(recorded_at) FROM stream_cut WHERE stream_id = :s")
        recorded.append((at, asked.lane.tail()))
    assert asked.ask(recorded_cut, recorded[0][0] - TICK) is None
    for at, cut in recorded:
        assert asked.ask(recorded_cut, at) == cut
        assert asked.ask(recorded_cut, at + TICK) == cut
    assert asked.ask(recorded_cut, recorded[1][0] - TICK) == recorded[0][1]


# The same rules in Python.


def test_sql_and_python_have_the_same_order_of_cuts(history: History) -> None:
    for start, end in history.pairs(12):
        a, b = history.value(start), history.value(end)
        try:
            rows = history.ask(queries.segments_between, as_json(start), as_json(end))
        except InvalidInput:
            assert not at_or_before(a, b)
            continue
        assert at_or_before(a, b)
        assert [row.segment_id for row in rows] == [
            s
            for s, segment in sorted(history.segments().items())
            if a.contains(segment) and (segment in b.present or not b.contains(segment))
        ]


def test_without_future_segments_the_order_by_spans_is_the_order_of_cuts(history: History) -> None:
    """Pravega's rule: no offset goes back, and no segment's span ends before that of another that
    overlaps it."""
    model, random = history.model, history.random
    cuts = [cut for cut in history.frontiers(20) if None not in cut.values()]
    cuts += [
        {s: random.randint(0, len(model.segments[s].events)) for s in epoch}
        for epoch in random.choices(model.epochs, k=10)
    ]
    for start, end in zip(cuts, random.sample(cuts, len(cuts)), strict=True):
        a, b = history.value(start), history.value(end)
        spans = [history.ask(queries.span, cut.to_json()) for cut in (a, b)]
        by_spans = all(a.present[s] <= b.present[s] for s in a.present if s in b.present) and all(
            spans[0][s.name] <= spans[1][n.name]
            for s in a.present
            for n in b.present
            if s != n and s.overlaps(n)
        )
        assert by_spans == at_or_before(a, b)
