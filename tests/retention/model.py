"""What a random schedule of retention knows by itself: which events there ever were, and of each
group what it was given, what it has released and since when nobody has seen it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.world.groups import Group
from tests.world.streams import Lane
from weir.model.segment import parse_segment_name
from weir.reader_groups.batch import Batch

Event = tuple[int, int]
Left = frozenset[Event]
DAY = 86400


@dataclass
class Events:
    """All events of a stream that there ever were, also those that no table knows any more."""

    lane: Lane
    now: float = 0.0  # seconds that have passed by `pass_time`
    segments: dict[int, tuple[float, float]] = field(default_factory=dict)
    since: dict[Event, float] = field(default_factory=dict)
    truncated: set[Event] = field(default_factory=set)

    def look(self) -> None:
        """Record the events that have come."""
        for row in self.lane.rows(
            """SELECT segment_id, key_low, key_high, coalesce(tail_offset, s.events) AS n
            FROM segment s LEFT JOIN segment_tail t USING (stream_id, segment_id)
            WHERE stream_id = :s"""
        ):
            self.segments[row.segment_id] = row.key_low, row.key_high
            for i in range(row.n):
                self.since.setdefault((row.segment_id, i), self.now)

    def all(self) -> set[Event]:
        return set(self.since)

    def passed(self, cut: dict[str, Any]) -> dict[int, float]:
        """Return how many events of each segment a cut has passed; infinity: and its end."""
        entries = {parse_segment_name(name): offset for name, offset in cut.items()}
        ends: dict[int, float] = {}
        for segment, (low, high) in self.segments.items():
            older = any(
                e < segment and self.segments[e][0] < high and self.segments[e][1] > low
                for e in entries
            )
            own = entries.get(segment, float("inf"))
            ends[segment] = 0 if older or own == "future" else own
        return ends

    def before(self, cut: dict[str, Any]) -> set[Event]:
        """Return the events that a cut has passed, key range by key range."""
        ends = self.passed(cut)
        return {(segment, i) for segment, i in self.since if i < ends[segment]}

    def left(self, cut: dict[str, Any]) -> Left:
        """Return the events that a cut has not passed, and the ends of their segments: so each cut
        has a set of its own, also where segments are empty."""
        sizes = Counter(segment for segment, _ in self.since)
        return frozenset(
            (segment, i)
            for segment, end in self.passed(cut).items()
            for i in range(sizes[segment] + 1)
            if i >= end
        )


@dataclass
class Member:
    """A group, and what it may count on.

    `given`: what it has read and committed or skipped, or what lay before the place where it was
    put. `released`: what it lets go; None: it is no subscriber.
    """

    group: Group
    events: Events
    given: set[Event]
    released: set[Event] | None
    manual: bool
    time_out: int | None
    start: set[Event]
    end: set[Event] | None = None  # what lies before the place where it stops for good
    skipped: int = 0
    checkpoints: dict[str, set[Event]] = field(default_factory=dict)
    # When its readers were active for the last time: for certain, and perhaps.
    active: float = 0.0
    perhaps: float = 0.0
    said: float = 0.0  # when somebody has last released something by hand
    # What a reader opened before it died, the files of that, and whether its lease still lasts.
    left: Batch | None = None
    files: set[str] = field(default_factory=set)
    leased: bool = False

    def __post_init__(self) -> None:
        self.moved()
        self.said = self.events.now

    @property
    def name(self) -> str:
        return self.group.name

    def moved(self) -> None:
        self.active = self.perhaps = self.events.now

    def wants(self, events: set[Event]) -> set[Event]:
        """Return those of some events that the group has not been given, and would be."""
        return (events if self.end is None else events & self.end) - self.given

    def gap(self) -> set[Event]:
        """Return what was truncated before the group was given it."""
        return self.wants(self.events.truncated)

    def skip(self) -> None:
        """Move the group to the head, where its reader goes on."""
        self.skipped += len(self.gap())
        self.given |= self.events.truncated

    def has_finished(self) -> bool:
        """Return whether the group has released all that it will ever read, or lost it."""
        assert self.released is not None
        return self.end is not None and self.end <= self.released | self.events.truncated

    def place(self, given: Iterable[Event]) -> None:
        """Put the group elsewhere. What its readers had opened counts no more."""
        self.given, self.left = set(given), None
        if self.released is not None:
            self.released = self.given & self.released if self.manual else set(self.given)
        self.moved()
        self.said = self.events.now

    def has_timed_out(self) -> bool | None:
        """Return whether the group has timed out; None: perhaps."""
        there = self.events.all() - self.events.truncated
        if self.manual and self.time_out and self.released is not None:
            held = (there if self.end is None else there & self.end) - self.released
            if not held or self.has_finished():
                return None if held else False
            first = min(self.events.since[event] for event in held)
            return self.events.now - max(self.said, first) > self.time_out
        unread = self.wants(there)
        if not unread or not self.time_out or self.released is None or (self.left and self.leased):
            return False
        if self.has_finished():
            return None  # by hand: it has a say only where all others have finished, too
        first = min(self.events.since[event] for event in unread)
        late, perhaps_late = (
            self.events.now - max(at, first) > self.time_out for at in (self.perhaps, self.active)
        )
        return late if late == perhaps_late else None


def events_of(batch: Batch) -> set[Event]:
    """Return the events that a batch gives."""
    return {(b.segment_id, i) for b in batch.bounds for i in range(b.start, b.end)}


def events_in(file: Any) -> set[Event]:
    """Return the events that lie in a file (a row of data_file)."""
    return {(file.segment_id, file.start_offset + i) for i in range(file.events)}
