"""A reader group by brute force: where it stands follows, event by event, from what it has read.

Streams are those of `tests.controller.model`, which keep every event. Nothing is known of who owns
what; of a batch only what its bounds say.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tests.controller.model import GRID, Cut, Event, Model
from weir.model.bounds import Bound

Cuts = dict[int, Cut]  # per stream id
Position = dict[tuple[int, int], int]  # per stream and segment id the next offset
Read = dict[int, list[Event]]  # per stream id, in the order in which a consumer sees them


@dataclass
class ModelReader:
    token: int
    expired: bool = False


@dataclass
class ModelBatch:
    bounds: tuple[Bound, ...]
    reader: str
    token: int
    attempt: int = 1
    state: str = "open"
    rest: tuple[tuple[Bound, ...], ...] = ()  # what was split off it, and is read next

    @property
    def held(self) -> list[Bound]:
        return [*self.bounds, *(bound for part in self.rest for bound in part)]

    @property
    def streams(self) -> set[int]:
        return {bound.stream_id for bound in self.held}


@dataclass
class ModelCheckpoint:
    cuts: Cuts
    waits: frozenset[int]
    late: bool  # its time is over at once
    state: str = "waiting"


@dataclass
class Era:
    """What became of the events of a stream since the group was put at a starting point."""

    start: Cut
    delivered: list[Event] = field(default_factory=list)
    declared: list[Event] = field(default_factory=list)  # read, as somebody said, by one offline
    lost: int = 0


class GroupModel:
    """One group."""

    def __init__(
        self, streams: Mapping[int, Model], cuts: Cuts, *, on_gap: str, subscriber: bool
    ) -> None:
        self.streams = dict(streams)
        self.starts = dict(cuts)
        self.cuts = dict(cuts)
        self.eras = {s: Era(cut) for s, cut in cuts.items()}
        self.lost = dict.fromkeys(cuts, 0)
        self.on_gap, self.subscriber = on_gap, subscriber
        self.released: Cuts = dict(cuts) if subscriber else {}
        self.generation = 0
        self.next_token = 1
        self.max_outstanding = 3
        self.readers: dict[str, ModelReader] = {}
        self.batches: dict[int, ModelBatch] = {}
        self.checkpoints: dict[str, ModelCheckpoint] = {}  # in the order of their creation

    # Readers.

    def join(self, name: str) -> int:
        self.readers[name] = ModelReader(self.next_token)
        self.next_token += 1
        return self.next_token - 1

    def has(self, name: str, token: int) -> bool:
        """Return whether a reader is still the one that was given this token."""
        return name in self.readers and self.readers[name].token == token

    def lapse(self, name: str) -> None:
        if name in self.readers:
            self.readers[name].expired = True

    def release(self, alive: str | None = None, only: str | None = None) -> None:
        """Remove readers whose leases have expired, but not those that hold a batch.

        `alive`: a reader that stays. `only`: the one reader that may go.
        """
        holders = {batch.reader for batch in self.open.values()}
        for name, reader in list(self.readers.items()):
            if reader.expired and name != alive and only in (None, name) and name not in holders:
                del self.readers[name]

    def offline(self, name: str) -> None:
        """Take a reader offline by hand. Whoever it was can't go on, not even with its batch."""
        mine = [batch for batch in self.open.values() if batch.reader == name]
        tokens: list[ModelReader | ModelBatch] = [self.readers[name], *mine]
        for one in tokens:
            one.token = self.next_token
        self.readers[name].expired = True
        self.next_token += 1

    # Batches.

    @property
    def open(self) -> dict[int, ModelBatch]:
        return {i: batch for i, batch in self.batches.items() if batch.state == "open"}

    def resumable(self, name: str) -> int | None:
        """Return the batch that a reader must go on with: its own, or else the first of an expired
        reader."""
        mine = [i for i, b in self.open.items() if b.reader == name]
        others = [i for i, b in self.open.items() if self.readers[b.reader].expired]
        return min(mine or others, default=None)

    def take(self, batch_id: int, name: str) -> ModelBatch:
        """Hand an open batch over whole, to a reader as it is now, and return it."""
        batch = self.batches[batch_id]
        batch.reader, batch.token = name, self.readers[name].token
        batch.attempt += 1
        return batch

    def passed(self, stream_id: int, bounds: Iterable[Bound]) -> Cut:
        """Return where the group stands in a stream when these bounds are read.

        Fails unless they are what can be read there: from the positions on, a segment only after
        everything before it (the merge barrier), and left only at its end.
        """
        model, cut = self.streams[stream_id], self.cuts[stream_id]
        left = model.unpassed(cut)
        positions = {s: offset for s, offset in cut.items() if offset is not None}
        mine = (bound for bound in bounds if bound.stream_id == stream_id)
        for bound in sorted(mine, key=lambda bound: bound.segment_id):
            s, segment = bound.segment_id, model.segments[bound.segment_id]
            assert s in left, "it was read before"
            assert not model.predecessors(s) & left, "something unread lies before it"
            assert positions.get(s, 0) == bound.start
            assert bound.start <= bound.end <= len(segment.events)
            positions[s] = bound.end
            if bound.completes:
                assert segment.sealed is not None
                assert bound.end == len(segment.events)
                left.discard(s)
        return model.listing(positions, left)

    def opened(self, batch_id: int, bounds: tuple[Bound, ...], name: str) -> None:
        """Record a new batch. Fails unless it is of what can be read, and of nothing that another
        one reads."""
        assert batch_id not in self.batches
        taken = {(b.stream_id, b.segment_id) for one in self.open.values() for b in one.held}
        mine = [(bound.stream_id, bound.segment_id) for bound in bounds]
        assert len({*mine}) == len(mine)
        assert not taken & {*mine}
        self.batches[batch_id] = ModelBatch(bounds, name, self.readers[name].token)
        for stream_id in self.batches[batch_id].streams:
            self.passed(stream_id, bounds)

    def commit(self, batch_id: int, read: Read, lost: Mapping[int, int]) -> None:
        """End a batch, deliver its events, and settle the checkpoints that waited for it."""
        batch = self.batches[batch_id]
        for stream_id in batch.streams:
            self.cuts[stream_id] = self.passed(stream_id, batch.bounds)
            self.eras[stream_id].delivered += read[stream_id]
            self._lose(stream_id, lost.get(stream_id, 0))
        batch.state = "committed"
        if self.has(batch.reader, batch.token):
            self.readers[batch.reader].expired = False
        if batch.rest:
            self._follow(batch_id, *batch.rest)
        self.settle()

    def split(self, batch_id: int, first: Iterable[Bound], rest: Iterable[Bound]) -> None:
        """End a batch and open one with its first half. The rest is read after that."""
        self.batches[batch_id].state = "split"
        self._follow(batch_id, tuple(first), tuple(rest), *self.batches[batch_id].rest)

    def _follow(self, batch_id: int, first: tuple[Bound, ...], *rest: tuple[Bound, ...]) -> None:
        """Open another batch of the same reader in the place of one."""
        before, following = self.batches[batch_id], max(self.batches) + 1
        self.batches[following] = ModelBatch(
            first, before.reader, before.token, attempt=0, rest=rest
        )
        for one in self.checkpoints.values():
            if one.state == "waiting" and batch_id in one.waits:
                one.waits = one.waits - {batch_id} | {following}

    def give_up(self, batch_id: int, position: Position) -> None:
        """End a batch at a position within it. What the position does not name is unread."""
        batch = self.batches[batch_id]
        read = self.within(batch, position)
        assert read is not None
        self.cuts |= {s: self.passed(s, read) for s in batch.streams}
        for bound in read:
            events = self.streams[bound.stream_id].segments[bound.segment_id].events
            self.eras[bound.stream_id].declared += events[bound.start : bound.end]
        batch.state = "abandoned"

    def within(self, batch: ModelBatch, position: Position) -> list[Bound] | None:
        """Return what of a batch was read up to a position; None if that can't have been."""
        if not position.keys() <= {(b.stream_id, b.segment_id) for b in batch.bounds}:
            return None
        read = []
        for bound in batch.bounds:
            at = position.get((bound.stream_id, bound.segment_id))
            if at is None:
                continue
            if not bound.start <= at <= bound.end:
                return None
            if at > bound.start or bound.completes:
                read.append(bound._replace(end=at, completes=bound.completes and at == bound.end))
        try:
            for s in batch.streams:
                self.passed(s, read)
        except AssertionError:
            return None
        return read

    # Gaps.

    def gaps(self) -> tuple[Cuts, dict[int, int]]:
        """Return where positions below the head must move to, and how many events are lost by it,
        per stream."""
        busy = {s for batch in self.open.values() for s in batch.streams}
        beyond, lost = {}, {}
        for s, cut in self.cuts.items():
            model = self.streams[s]
            if s not in busy and not model.behind(model.head, cut):
                beyond[s] = model.join(cut, model.head)
                lost[s] = model.size_till(beyond[s])[0] - model.size_till(cut)[0]
        return beyond, lost

    def skip(self) -> None:
        beyond, lost = self.gaps()
        self.cuts |= beyond
        for s, events in lost.items():
            self._lose(s, events)

    def _lose(self, stream_id: int, events: int) -> None:
        self.lost[stream_id] += events
        self.eras[stream_id].lost += events

    def pass_ends(self, stream_id: int, cut: Cut) -> None:
        """Move the group to a cut that leaves ends of sealed segments for their successors. Fails
        if an event lies between."""
        model, before = self.streams[stream_id], self.cuts[stream_id]
        assert model.behind(before, cut)
        assert model.size_till(before) == model.size_till(cut)
        left = model.unpassed(cut)
        assert cut == model.listing({s: o for s, o in cut.items() if o is not None}, left)
        passed = model.unpassed(before) - left
        assert all(model.segments[s].sealed is not None for s in passed)
        held = {(b.stream_id, b.segment_id) for one in self.open.values() for b in one.held}
        assert not {(stream_id, s) for s in passed} & held
        self.cuts[stream_id] = cut

    # Checkpoints.

    def checkpoint(self, name: str, *, barrier: bool, late: bool) -> ModelCheckpoint:
        waits = frozenset(self.open) if barrier else frozenset()
        cuts = dict(self.cuts)
        if waits:
            self.settle()
            bounds = [bound for batch in self.open.values() for bound in batch.bounds]
            cuts = {s: self.passed(s, bounds) for s in cuts}
        made = self.checkpoints[name] = ModelCheckpoint(cuts, waits, late)
        if not waits:
            self._complete(made)
        return made

    @property
    def outstanding(self) -> list[str]:
        return [name for name, one in self.checkpoints.items() if one.state == "waiting"]

    def fate(self, one: ModelCheckpoint) -> str:
        """Return what a checkpoint that waits becomes if somebody looks at it now."""
        states = {self.batches[i].state for i in one.waits}
        if "abandoned" in states:
            return "cancelled"
        if "open" not in states:
            return "complete"
        return "timed out" if one.late else "waiting"

    def settle(self) -> None:
        """Complete or give up the checkpoints that waited."""
        for name in self.outstanding:
            one = self.checkpoints[name]
            one.state = self.fate(one)
            if one.state == "complete":
                self._complete(one)

    def _complete(self, one: ModelCheckpoint) -> None:
        one.state = "complete"
        if self.subscriber:
            for s in one.cuts.keys() & self.cuts.keys():
                self.released[s] = self.streams[s].join(self.released[s], one.cuts[s])

    def last(self) -> Cuts:
        """Return the cuts of the newest complete checkpoint, or else the start."""
        complete = [one.cuts for one in self.checkpoints.values() if one.state == "complete"]
        return complete[-1] if complete else self.starts

    # Changes.

    def reset(self, cuts: Cuts) -> None:
        for batch in self.open.values():
            batch.state = "abandoned"
        for name in self.outstanding:
            self.checkpoints[name].state = "cancelled"
        self.readers.clear()
        self.cuts = dict(cuts)
        self.eras = {s: Era(cut) for s, cut in cuts.items()}
        self.released = dict(cuts) if self.subscriber else {}
        self.generation += 1

    def leave(self, stream_id: int) -> None:
        """Stop reading a stream."""
        for by_stream in (self.streams, self.starts, self.cuts, self.eras, self.lost):
            del by_stream[stream_id]
        self.released.pop(stream_id, None)
        for name in self.outstanding:
            self.checkpoints[name].cuts.pop(stream_id, None)

    def enter(self, stream_id: int, model: Model, cut: Cut) -> None:
        """Begin to read another stream, too, at a cut."""
        self.streams[stream_id], self.lost[stream_id] = model, 0
        self.starts[stream_id] = self.cuts[stream_id] = cut
        self.eras[stream_id] = Era(cut)
        if self.subscriber:
            self.released[stream_id] = cut

    # What must hold.

    def check(self) -> None:
        """Check every event between where the group was put and where it stands. It was delivered
        once, in order per key; or it had been truncated, or somebody said that it was read."""
        for s, era in self.eras.items():
            model, cut = self.streams[s], self.cuts[s]
            assert len(set(era.delivered)) == len(era.delivered), "delivered twice"
            for cell in range(GRID):
                orders = [event.order for event in era.delivered if event.cell == cell]
                assert orders == sorted(orders), "out of order"
            passed = model.size_till(cut)[0] - model.size_till(era.start)[0]
            assert passed == len(era.delivered) + len(era.declared) + era.lost
            seen = {*era.delivered, *era.declared}
            for event, readable in self._between(model, era.start, cut):
                assert event in seen or not readable, "lost"

    def _between(self, model: Model, start: Cut, end: Cut) -> Iterable[tuple[Event, bool]]:
        """Yield the events from one cut to another, and whether each can still be read."""
        before, after = model.unpassed(start), model.unpassed(end)
        below = model.unpassed(model.head)
        for s, segment in model.segments.items():
            events = len(segment.events)
            first, past, head = (
                (cut.get(s) or 0) if s in left else events
                for cut, left in ((start, before), (end, after), (model.head, below))
            )
            for i in range(first, past):
                yield segment.events[i], i >= head
