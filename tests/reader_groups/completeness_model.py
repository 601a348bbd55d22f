"""What streams and groups are complete to, and what is late, as a model of every event has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random
from typing import Any

from tests.world.groups import Group, Reader, events_of
from tests.world.streams import FIELDS, Lane, unique
from weir.controller.commit import commit
from weir.controller.completeness import state_completeness
from weir.controller.seal import seal_stream
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.bounds import Bound
from weir.model.event_time import DONE, NO_MORE, EventTimes, as_datetime, say_time
from weir.model.segment import parse_segment_name
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.groups.reset import reset_reader_group

Times = Sequence[int | None]
Event = tuple[int, int, int]  # stream, segment, offset
_paths = count(1)


def staged_times(attempt: Attempt, written: Mapping[str, Sequence[Times]]) -> Staged:
    """Return what an attempt would have written: per segment its files, with all event times."""
    files = []
    everything: list[int] = []
    rank = 0
    for segment, parts in written.items():
        for times in parts:
            known = [t for t in times if t is not None]
            everything += known
            files.append(
                StagedFile(
                    parse_segment_name(segment), f"{attempt.folder}{next(_paths)}.parquet",
                    len(times), 10 * len(times), rank, rank + len(times) - 1,
                    min(known, default=None), max(known, default=None), len(times) - len(known),
                )
            )  # fmt: skip
            rank += len(times)

    def count_late(complete_until: int) -> int:
        return sum(t < complete_until for t in everything)

    until = attempt.complete_until
    found = EventTimes("at", 0 if until is None else count_late(until), until)
    return Staged(attempt, tuple(files), FIELDS, times=found, count_late=count_late)


@dataclass
class Stream:
    """A stream, and the model of it: every event, and what its writers have stated."""

    lane: Lane
    times: dict[Event, int | None] = field(default_factory=dict)
    clocks: dict[Event, int] = field(default_factory=dict)
    stated: dict[str, int] = field(default_factory=dict)
    complete_until: int | None = None
    completed: list[tuple[int, int | None]] = field(default_factory=list)  # by commit
    late: set[Event] = field(default_factory=set)
    sealed: bool = False

    @classmethod
    def made(cls, database: Database) -> "Stream":
        return cls(Lane.made(database, event_time="at"))

    def begin(self, writer: str, until: Any = None) -> Attempt:
        from weir.controller.transactions import begin

        found = begin(
            self.lane.database, self.lane.name, writer_id=writer, batch_id=unique("b"),
            fingerprint="", lease=600.0, source="test", complete_until=until,
        )  # fmt: skip
        assert isinstance(found, Attempt)
        return found

    def committed(self, staged: Staged, parts: Mapping[str, Sequence[Times]], done: Any) -> None:
        """Learn what a commit did, and compare it with what it should have done."""
        known = [t for files in parts.values() for times in files for t in times if t is not None]
        expected = 0 if self.complete_until is None else sum(t < self.complete_until for t in known)
        assert done.late == expected
        before, writer = self.complete_until, self.writer_of(staged.attempt)
        until = staged.attempt.stated_until
        returns = self.stated.get(writer) == NO_MORE and until != NO_MORE
        assert done.returned_writer == (writer if returns else None)
        if returns:  # what it states now, or else where the stream is
            del self.stated[writer]
            until = before if until is None else until
        if until is not None:
            self.states(writer, until)
        assert done.complete_until == self.complete_until
        assert (done.min_event_time, done.max_event_time) == (
            min(known, default=None), max(known, default=None),
        )  # fmt: skip
        self.completed.append((done.clock, self.complete_until))
        lists = {f.path: times for f, times in zip(staged.files, _flat(parts), strict=True)}
        for file in self.lane.files():
            for i, time in enumerate(lists.get(file.path, ())):
                event = (self.lane.stream_id, file.segment_id, file.start_offset + i)
                self.times[event], self.clocks[event] = time, done.clock
                if time is not None and before is not None and time < before:
                    self.late.add(event)

    def writer_of(self, attempt: Attempt) -> str:
        found: str = self.lane.value(
            "SELECT writer_id FROM transaction WHERE stream_id = :s AND transaction_number = :n",
            n=attempt.transaction_number,
        )
        return found

    def states(self, writer: str, until: int) -> None:
        self.stated[writer] = max(until, self.stated.get(writer, until))
        speaking = [one for one in self.stated.values() if one != NO_MORE]
        if speaking:
            before = self.complete_until
            self.complete_until = min(speaking) if before is None else max(before, min(speaking))

    def complete_with(self, read: set[Event]) -> int | None:
        """Return the event time before which whoever has read these events has read everything;
        None if there is none."""
        oldest = min((self.clocks[e] for e in self.clocks.keys() - read), default=None)
        if oldest is None:
            return self.complete_until
        return next((until for clock, until in reversed(self.completed) if clock < oldest), None)


def _flat(parts: Mapping[str, Sequence[Times]]) -> list[Times]:
    return [times for files in parts.values() for times in files]


@dataclass
class World:
    """Two streams, writers, a group with two readers, and what the group has read."""

    random: Random
    streams: list[Stream]
    group: Group
    readers: list[Reader]
    read: set[Event] = field(default_factory=set)
    truncated: set[Event] = field(default_factory=set)
    now: int = 1_000_000
    may_lose: bool = False

    @classmethod
    def made(cls, database: Database, random: Random) -> "World":
        streams = [Stream.made(database) for _ in range(2)]
        lanes = [stream.lane for stream in streams]
        world = cls(random, streams, Group.made(*lanes), [])
        if random.random() < 0.5:  # a group that begins later, and perhaps at the tail
            for _ in range(3):
                world.append()
            start = random.choice(["head", "tail"])
            world.group = Group.made(*lanes, start=start, subscriber=False, on_gap="skip")
            world.may_lose = True
        world.readers = [world.group.reader("one"), world.group.reader("two")]
        return world

    def times(self) -> Times:
        """Return event times around the present one, of which some are late and some are none."""
        return [
            self.random.choice([None, self.now + self.random.randint(-40, 20)])
            for _ in range(self.random.randint(1, 4))
        ]

    def until(self) -> Any:
        stated = self.now + self.random.randint(-30, 0)
        return self.random.choice([None, None, as_datetime(stated), say_time(stated), DONE])

    def parts(self, segments: Sequence[str]) -> dict[str, list[Times]]:
        chosen = self.random.sample(segments, self.random.randint(0, len(segments)))
        return {name: [self.times() for _ in range(self.random.randint(1, 2))] for name in chosen}

    def append(self) -> None:
        """Append to one stream or, in one commit, to both. Others may commit meanwhile."""
        active = self.active()
        chosen = self.random.sample(active, min(len(active), self.random.choice([1, 1, 2])))
        staged, parts = [], []
        for stream in chosen:
            attempt = stream.begin(self.random.choice("abc"), self.until())
            parts.append(self.parts([segment.name for segment in attempt.segments]))
            staged.append(staged_times(attempt, parts[-1]))
            if self.random.random() < 0.3:  # others commit while this one writes
                self.append_one(self.random.choice(active))
        done = commit(chosen[0].lane.database, *staged)
        for stream, one, part, found in zip(chosen, staged, parts, done, strict=True):
            stream.committed(one, part, found)

    def append_one(self, stream: Stream) -> None:
        attempt = stream.begin(self.random.choice("abc"), self.until())
        parts = self.parts([segment.name for segment in attempt.segments])
        self.end(stream, attempt, parts)

    def end(self, stream: Stream, attempt: Attempt, parts: Mapping[str, Sequence[Times]]) -> None:
        one = staged_times(attempt, parts)
        [done] = commit(stream.lane.database, one)
        stream.committed(one, parts, done)

    def active(self) -> list[Stream]:
        return [stream for stream in self.streams if not stream.sealed]

    def seal(self) -> None:
        """Seal one stream, once and by chance, while the other stream goes on."""
        if not self.streams[1].sealed and self.random.random() < 0.3:
            lane = self.streams[1].lane
            seal_stream(lane.database, lane.name, request_id=unique("seal"))
            self.streams[1].sealed = True

    def roll(self) -> None:
        """Commit an append that began before a scale."""
        stream = self.random.choice(self.active())
        attempt = stream.begin("a", self.until())
        stream.lane.scale(self.random.choice(stream.lane.active()))
        self.end(stream, attempt, self.parts([segment.name for segment in attempt.segments]))

    def state(self) -> None:
        stream, until = self.random.choice(self.active()), self.now - self.random.randint(0, 30)
        done = self.random.random() < 0.3
        state_completeness(stream.lane.database, stream.lane.name, "b", DONE if done else until)
        stream.states("b", NO_MORE if done else until)

    def batch(self) -> None:
        reader = self.random.choice(self.readers)
        rest = [one for one in self.group.batches() if one.state == "open"]
        batch = reader.open(self.random.choice([1, 3, 10]), expected=2, lease=3600.0)
        if batch is None:
            return
        if not rest:  # the second half of a batch was opened when the first was committed
            self.check(events_of(batch), batch.complete_until)
        again = reader.must_open()
        assert (again.batch_id, again.complete_until) == (batch.batch_id, batch.complete_until)
        if batch.events > 1 and self.random.random() < 0.2:
            split_batch(self.group.database, again, "it failed")
            again = reader.must_open()
            self.check(events_of(again), again.complete_until)
        known = [one.batch_id for one in self.group.batches()]
        reader.commit(again)
        self.read |= events_of(again)
        for rest in self.group.batches():
            if rest.batch_id not in known:
                bounds = tuple(Bound.of(value) for value in rest.bounds)
                self.check(events_of(replace(again, bounds=bounds)), rest.complete_until)

    def check(self, batch: set[Event], complete_until: int | None) -> None:
        """Check what a batch is complete to. Batches that others read at the same time do not
        count, as they are not committed yet."""
        with_it = self.read | batch
        found: list[int | None] = []
        holding: list[int | None] = []
        expected = None
        for stream in self.streams:
            if stream.complete_until is not None:
                found.append(stream.complete_with(with_it))
                if not stream.sealed or stream.clocks.keys() - with_it:
                    holding.append(found[-1])
        known = [one for one in found if one is not None]
        if found and known == found:
            held = [one for one in holding if one is not None]  # all of them
            expected = min(held) if held else max(known)
        assert complete_until == expected
        for stream in self.streams:
            for event in stream.times.keys() - with_it - stream.late:
                time = stream.times[event]
                if stream.complete_until is not None and time is not None and expected is not None:
                    assert time >= expected, "all that is missing before it is late"

    def reset(self) -> None:
        """Let the group go to the head or to the tail. What it passes by that is never read, and
        what it goes back over is unread again."""
        to = self.random.choice(["head", "tail", "tail"])
        reset_reader_group(
            self.group.database, self.group.name, to, allow_repeat=True, request_id=unique("reset")
        )
        if to == "head":
            self.read = {e for e in self.read if e in self.truncated}
        self.readers = [self.group.reader("one"), self.group.reader("two")]

    def truncate(self) -> None:
        """Truncate a stream at its tail, which the group may not have reached. No batch is open,
        so that each event is read or lost."""
        stream = self.random.choice(self.active())
        if any(batch.state == "open" for batch in self.group.batches()):
            return
        stream.lane.truncate(
            ", ".join(f"{segment}={offset}" for segment, offset in stream.lane.tail().items())
        )
        self.truncated |= stream.clocks.keys()

    def step(self) -> None:
        self.now += self.random.randint(0, 10)
        lossy = [self.reset, self.truncate] if self.may_lose else []
        self.random.choice(
            [self.append] * 3 + [self.batch] * 4 + [self.roll, self.state, self.seal, *lossy]
        )()
        self.views()

    def views(self) -> None:
        for stream in self.streams:
            [found] = stream.lane.rows(
                "SELECT complete_until, late_events, newest_event_time FROM weir.completeness "
                "WHERE stream = :n", n=str(stream.lane.name),
            )  # fmt: skip
            newest = max((t for t in stream.times.values() if t is not None), default=None)
            assert (*found,) == (
                as_datetime(stream.complete_until),
                len(stream.late),
                as_datetime(newest),
            )
            [[complete]] = stream.lane.rows(
                "SELECT complete_until FROM weir.group_completeness WHERE stream = :n "
                "AND reader_group = :g",
                n=str(stream.lane.name),
                g=self.group.name,
            )
            assert complete == as_datetime(stream.complete_with(self.read))


def append(
    stream: Stream, times: Times, until: Any = None, writer: str = "w", segment: str = "0.0"
) -> Committed:
    """Append events with these times to one segment."""
    staged = staged_times(stream.begin(writer, until), {segment: [times]} if times else {})
    [done] = commit(stream.lane.database, staged)
    return done
