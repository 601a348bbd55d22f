"""What streams and groups are complete to, and what is late, as a model of every event has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from random import Random
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.controller.support import FIELDS, Lane, unique
from tests.raises import raises
from tests.reader_groups.support import Group, Reader
from weir.controller.commit import commit
from weir.controller.queries import completeness, group_completeness
from weir.controller.seal import seal_stream
from weir.controller.staged import Staged, StagedFile, announce
from weir.controller.transactions import Attempt, Committed, state_completeness
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.bounds import Bound
from weir.model.event_time import DONE, NO_MORE, EventTimes, as_datetime, say_time
from weir.model.names import stream_name
from weir.model.segment import parse_segment_name
from weir.reader_groups.batches import Batch
from weir.reader_groups.splits import split_batch

Times = Sequence[int | None]
Event = tuple[int, int, int]  # stream, segment, offset
_paths = count(1)


def staged_times(attempt: Attempt, written: Mapping[str, Sequence[Times]]) -> Staged:
    """What an attempt would have written: per segment its files, with all event times."""
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

    def count_late(word: int) -> int:
        return sum(t < word for t in everything)

    word = attempt.complete_until
    found = EventTimes("at", 0 if word is None else count_late(word), word)
    return Staged(attempt, tuple(files), FIELDS, times=found, count_late=count_late)


@dataclass
class Stream:
    """A stream, and the model of it: every event, and what its writers have stated."""

    lane: Lane
    times: dict[Event, int | None] = field(default_factory=dict)
    clocks: dict[Event, int] = field(default_factory=dict)
    stated: dict[str, int] = field(default_factory=dict)
    word: int | None = None
    words: list[tuple[int, int | None]] = field(default_factory=list)  # by commit
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
        expected = 0 if self.word is None else sum(t < self.word for t in known)
        assert done.late == expected
        before = self.word
        if (until := staged.attempt.stated_until) is not None:
            self.states(self.writer_of(staged.attempt), until)
        assert done.complete_until == self.word
        assert (done.min_event_time, done.max_event_time) == (
            min(known, default=None), max(known, default=None),
        )  # fmt: skip
        self.words.append((done.clock, self.word))
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
            self.word = min(speaking) if self.word is None else max(self.word, min(speaking))

    def complete_with(self, read: set[Event]) -> int | None:
        """What whoever has read these events has read everything before."""
        oldest = min((self.clocks[e] for e in self.clocks.keys() - read), default=None)
        if oldest is None:
            return self.word
        return next((word for clock, word in reversed(self.words) if clock < oldest), None)


def _flat(parts: Mapping[str, Sequence[Times]]) -> list[Times]:
    return [times for files in parts.values() for times in files]


def events_of(batch: Batch) -> set[Event]:
    return {(b.stream_id, b.segment_id, o) for b in batch.bounds for o in range(b.start, b.end)}


@dataclass
class World:
    """Two streams, writers, a group with two readers, and what the group has read."""

    random: Random
    streams: list[Stream]
    group: Group
    readers: list[Reader]
    read: set[Event] = field(default_factory=set)
    now: int = 1_000_000

    @classmethod
    def made(cls, database: Database, random: Random) -> "World":
        streams = [Stream.made(database) for _ in range(2)]
        group = Group.made(*(stream.lane for stream in streams))
        return cls(random, streams, group, [group.reader("one"), group.reader("two")])

    def times(self) -> Times:
        """Event times around the present one; some are late, some are none."""
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
        """To one stream or to both at once, as several transactions or as one."""
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
        """Once, and the other stream goes on."""
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
        state_completeness(stream.lane.database, stream.lane.name, "b", until)
        stream.states("b", until)

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
        """Of what is read by others at the same time, nothing is committed yet."""
        with_it = self.read | batch
        found, holding, expected = [], [], None
        for stream in self.streams:
            if stream.word is not None:
                found.append(stream.complete_with(with_it))
                if not stream.sealed or stream.clocks.keys() - with_it:
                    holding.append(found[-1])
        if found and None not in found:
            expected = min(holding) if holding else max(found)
        assert complete_until == expected
        for stream in self.streams:
            for event in stream.times.keys() - with_it - stream.late:
                time = stream.times[event]
                if None not in (stream.word, time, expected):
                    assert time >= expected, "all that is missing before it is late"

    def step(self) -> None:
        self.now += self.random.randint(0, 10)
        self.random.choice(
            [self.append] * 3 + [self.batch] * 4 + [self.roll, self.state, self.seal]
        )()
        self.views()

    def views(self) -> None:
        for stream in self.streams:
            [found] = stream.lane.rows(
                "SELECT complete_until, late_events, newest_event_time FROM weir.completeness "
                "WHERE stream = :n", n=str(stream.lane.name),
            )  # fmt: skip
            newest = max((t for t in stream.times.values() if t is not None), default=None)
            assert (*found,) == (as_datetime(stream.word), len(stream.late), as_datetime(newest))
            [[complete]] = stream.lane.rows(
                "SELECT complete_until FROM weir.group_completeness WHERE stream = :n",
                n=str(stream.lane.name),
            )
            assert complete == as_datetime(stream.complete_with(self.read))


@pytest.mark.parametrize("case", range(cases(30)))
def test_completeness_and_late_events_are_those_of_the_model(
    shared_database: Database, case: int
) -> None:
    world = World.made(shared_database, random_for(case))
    streams = world.streams
    for _ in range(20):
        world.step()
    words = [w for stream in streams for _, w in stream.words]
    assert words
    for stream in streams:
        known = [word for _, word in stream.words if word is not None]
        assert all(a <= b for a, b in pairwise(known)), "a stream is never complete to less"


def one(stream: Stream, times: Times, writer: str = "w", until: Any = None) -> Committed:
    """Append to one segment."""
    attempt = stream.begin(writer, until)
    staged = staged_times(attempt, {"0.0": [times]} if times else {})
    [done] = commit(stream.lane.database, staged)
    return done


def test_a_writer_that_is_done_holds_nothing_back(shared_database: Database) -> None:
    stream = Stream.made(shared_database)
    assert one(stream, [10], "a", as_datetime(10)).complete_until == 10
    assert one(stream, [30], "b", as_datetime(30)).complete_until == 10
    found = shared_database.transaction(lambda c: completeness(c, stream.lane.name))
    assert found is not None
    assert (found.held_by, found.writers) == ("a", 2)
    assert one(stream, [], "a", DONE).complete_until == 30
    assert one(stream, [40], "a", as_datetime(20)).complete_until == 30, "it does not come back"


def test_a_sealed_stream_that_is_read_holds_nothing_back(shared_database: Database) -> None:
    ended, going = Stream.made(shared_database), Stream.made(shared_database)
    one(ended, [10], until=as_datetime(10))
    one(going, [30], until=as_datetime(30))
    group = Group.made(ended.lane, going.lane)
    assert group.reader().must_open().complete_until == 10
    seal_stream(shared_database, ended.lane.name, request_id=unique("seal"))
    group = Group.made(ended.lane, going.lane)
    reader = group.reader()
    first = reader.must_open(1)
    assert first.complete_until is None, "of the other stream nothing is read"
    reader.commit(first)
    assert reader.must_open().complete_until == 30
    alone = Group.made(ended.lane).reader()
    assert alone.must_open().complete_until == 10, "the last word, if no other stream goes on"


def test_an_append_that_a_roll_takes_along_is_counted_where_its_range_decides(
    shared_database: Database,
) -> None:
    stream = Stream.made(shared_database)
    late, on_time, rolling = (stream.begin(writer) for writer in "abc")
    stream.lane.scale("0.0")
    for attempt, times in ((late, [15, 25]), (on_time, [20, 25])):
        waits = staged_times(attempt, {"0.0": [times]})
        shared_database.transaction(lambda c, one=waits: announce(c, one))
    attempt = stream.begin("d", as_datetime(20))
    commit(shared_database, staged_times(attempt, {"1.0": [[30]]}))
    [rolled] = commit(shared_database, staged_times(rolling, {"0.0": [[15, 16]]}))
    assert (rolled.rolled, rolled.late) == (True, 2)
    found = stream.lane.rows(
        """SELECT late, min_event_time FROM transaction WHERE stream_id = :s
        AND transaction_number = ANY(:n) ORDER BY transaction_number""",
        n=[late.transaction_number, on_time.transaction_number],
    )
    assert found == [(None, 15), (0, 20)], "the session that rolls does not read their files"
    [[total]] = stream.lane.rows("SELECT late_events FROM weir.completeness WHERE stream_id = :s")
    assert total == 2


def test_a_retry_of_a_committed_append_states_what_it_knows_now(shared_database: Database) -> None:
    from weir.controller.transactions import begin

    stream = Stream.made(shared_database)
    attempt = stream.lane.opened("batch")
    commit(shared_database, staged_times(attempt, {"0.0": [[10]]}))
    again = begin(
        shared_database, stream.lane.name, writer_id="writer", batch_id="batch",
        fingerprint="print", lease=60.0, source="test", complete_until=as_datetime(10),
    )  # fmt: skip
    assert isinstance(again, Committed)
    assert again.repeated
    assert stream.lane.value("SELECT complete_until FROM stream WHERE stream_id = :s") == 10


def test_what_cannot_be_stated_without_an_append_is_refused(shared_database: Database) -> None:
    stream, untimed = Stream.made(shared_database), Lane.made(shared_database)
    one(stream, [10])

    def state(lane: Lane, until: Any) -> None:
        state_completeness(shared_database, lane.name, "w", until)

    with raises(f"completeness_in_future 2199-01-01T00:00:00Z {stream.lane.name}"):
        state(stream.lane, "2199-01-01")
    with raises(f"event_time_missing {untimed.name}"):
        state(untimed, as_datetime(10))
    with raises("stream_not_found test/none"):
        state(replace(stream.lane, name=stream_name("test/none")), as_datetime(10))
    state(stream.lane, as_datetime(10))
    seal_stream(shared_database, stream.lane.name, request_id=unique("seal"))
    with raises(f"stream_not_active {stream.lane.name}"):
        state(stream.lane, as_datetime(20))
    assert stream.lane.value("SELECT complete_until FROM stream WHERE stream_id = :s") == 10


def test_another_event_time_begins_anew_and_changes_nothing_of_before(
    shared_database: Database,
) -> None:
    stream = Stream.made(shared_database)
    lane = stream.lane
    group = Group.made(lane)
    one(stream, [10, 20], until=as_datetime(20))
    before, between = lane.opened(), lane.rows("SELECT * FROM time_index WHERE stream_id = :s")
    update_stream(shared_database, lane.name, {"event_time": "other"}, request_id=unique("u"))
    [done] = commit(shared_database, staged_times(before, {"1.0": [[5, 6]]}))
    assert (done.late, done.min_event_time, done.complete_until) == (None, None, None)
    found = lane.rows("SELECT * FROM time_index WHERE stream_id = :s ORDER BY clock")
    assert found[0] == between[0], "what is recorded stays"
    assert found[1].min_event_time is None, "it was computed with the expression of before"
    [view] = lane.rows("SELECT * FROM weir.completeness WHERE stream_id = :s")
    assert (view.complete_until, view.newest_event_time, view.late_events) == (None, None, 0)
    batch = group.reader().must_open()
    assert batch.complete_until is None
    update_stream(shared_database, lane.name, {"event_time": None}, request_id=unique("u"))
    assert lane.rows("SELECT * FROM weir.completeness WHERE stream_id = :s") == []


def test_the_word_of_a_group_counts_only_streams_whose_writers_state_something(
    shared_database: Database,
) -> None:
    speaking, silent = Stream.made(shared_database), Stream.made(shared_database)
    group = Group.made(speaking.lane, silent.lane)
    reader = group.reader()
    one(silent, [5])
    batch = reader.must_open()
    assert batch.complete_until is None
    reader.commit(batch)
    found = shared_database.transaction(lambda c: group_completeness(c, group.name))
    assert {row.complete_until for row in found} == {None}
    one(speaking, [10], until=as_datetime(10))
    one(silent, [5])
    assert reader.must_open().complete_until == 10
