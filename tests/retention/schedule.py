"""What happens at random to a stream and its groups, in the database and in the model of it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.retention.model import DAY, Event, Events, Member, events_in, events_of
from tests.world.groups import ALL, LEASE, Group, Reader
from tests.world.retention import pass_time
from tests.world.streams import Lane, staged, unique
from weir.controller.commit import commit, commit_in
from weir.controller.locks import lock_streams
from weir.controller.transactions import abort
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.errors import Fenced, InvalidInput, Truncated
from weir.kernel.attempt import Attempt, Staged
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.groups.lifecycle import delete_reader_group, fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.capture import capture
from weir.retention.prune import prune
from weir.retention.release import release

LIMITS = ("retain_min_age", "retain_max_age", "retain_min_bytes", "retain_max_bytes")


@dataclass
class Schedule:
    """One stream, its groups, and what is known of them."""

    lane: Lane
    warehouse: Path
    random: Random
    events: Events
    members: dict[str, Member] = field(default_factory=dict)
    policy: dict[str, Any] = field(default_factory=dict)
    late: list[Attempt] = field(default_factory=list)
    captured: bool = True  # all that has come

    @property
    def database(self) -> Database:
        return self.lane.database

    def some(self) -> Member | None:
        return self.random.choice(list(self.members.values())) if self.members else None

    # What happens to the stream.

    def write(self, path: str) -> None:
        """Write a file of one byte."""
        file = self.warehouse / path
        file.parent.mkdir(parents=True)
        file.write_bytes(b"1")

    def written(self, attempt: Attempt) -> Staged:
        """Write files for some segments of the epoch in which an attempt began, and return them."""
        names = [segment.name for segment in attempt.segments]
        chosen = self.random.sample(names, self.random.randint(1, len(names)))
        made = staged(attempt, {name: self.random.randint(1, 4) for name in chosen})
        for file in made.files:
            self.write(file.path)
        return made

    def came(self) -> None:
        self.captured = False
        self.events.look()

    def append(self) -> None:
        commit(self.database, self.written(self.lane.opened()))
        self.came()

    def append_late(self) -> None:
        """Begin an append, or end one that began earlier, perhaps in an epoch that is over."""
        if len(self.late) < self.random.randint(1, 2):
            self.late.append(self.lane.opened())
        elif self.random.random() < 0.8:
            self.commit_late(self.late.pop(0))
        else:
            attempt = self.late.pop(0)
            self.write(attempt.folder + "part")
            abort(self.database, attempt)

    def commit_late(self, attempt: Attempt) -> None:
        """Commit an attempt as the output of a batch is: without waiting for others that need a
        roll."""
        made = self.written(attempt)

        def work(connection: Connection) -> None:
            commit_in(connection, lock_streams(connection, ids=[self.lane.stream_id]), [made])

        self.database.transaction(work)
        self.came()

    def scale(self) -> None:
        active = self.lane.active()
        first = self.random.randrange(len(active))
        self.lane.scale(*active[first : first + self.random.randint(1, 2)],
                        parts=self.random.randint(1, 2))  # fmt: skip
        self.came()

    def choose_policy(self) -> None:
        def pair(most: int) -> tuple[int | None, int | None]:
            most = self.random.choice([most, most // 2])
            low = self.random.choice([None, self.random.randint(1, most)])
            highs = [None, self.random.randint(low or 1, 2 * most)]
            if low:  # the same, or so close that less than a record lies between
                highs += [low, low + self.random.randint(0, most // 8)]
            return low, self.random.choice(highs)

        ages, sizes = pair(DAY), pair(80)
        if self.random.random() < 0.3:
            ages = sizes = (None, None)
            if self.random.random() < 0.2:
                return self.set_policy(dict.fromkeys(LIMITS) | {"retention": "keep"})
        self.set_policy({
            "retention": self.retention(ages[1], sizes[1]),
            "retain_min_age": ages[0], "retain_max_age": ages[1],
            "retain_min_bytes": sizes[0], "retain_max_bytes": sizes[1],
        })  # fmt: skip

    def retention(self, max_age: int | None, max_bytes: int | None) -> str:
        """Mostly by consumption, which may have any limits."""
        if self.random.random() < 0.8:
            return "consumed"
        return "age" if max_age else "size" if max_bytes else "consumed"

    def set_policy(self, policy: dict[str, Any]) -> None:
        update_stream(self.database, self.lane.name, policy, request_id=unique("policy"))
        self.policy = policy

    def truncate(self) -> None:
        """Truncate by hand, whoever has not read it."""
        try:
            self.lane.truncate(self.somewhere()[0])
        except InvalidInput:
            return  # behind the head
        self.events.truncated = self.events.before(self.lane.head())

    def time(self) -> None:
        # No sum of these is about a day.
        seconds = self.random.choice([0.13, 0.6, 1.1]) * DAY
        pass_time(self.lane, seconds)
        self.events.now += seconds
        for member in self.members.values():
            member.leased = False

    def capture(self) -> None:
        capture(self.database)
        self.captured = True

    def prune(self) -> None:
        prune(self.database, 0.0)

    # What happens to groups.

    def subscribe(self, **options: Any) -> None:
        how: dict[str, Any] = {
            "start": self.random.choice(["head", "tail"]),
            "time_out": self.random.choice([None, DAY]),
            "subscriber": self.random.random() < 0.85,
            "release": self.random.choices(["automatic", "manual"], (2, 1))[0],
            **options,
        }
        given = self.events.all() if how["start"] == "tail" else self.events.truncated
        end, lacks = None, False
        if not options and self.random.random() < 0.3:
            how["end"], end = self.somewhere()
            if how["start"] == "head":
                lacks = bool(given & end) and not given <= end
                how["allow_truncated"] = self.random.random() < 0.5
                end |= given if how["allow_truncated"] and lacks else set()
        try:
            group = Group.made(self.lane, on_gap="skip", allow_loss=True, **how)
        except InvalidInput:
            assert end is not None
            assert not given <= end
            return  # it lies before the start
        except Truncated:
            assert lacks
            assert not how["allow_truncated"]
            return
        assert not lacks or how["allow_truncated"]
        self.enter(
            group, given, how["subscriber"], how["release"] == "manual", how["time_out"], end
        )

    def enter(
        self, group: Group, given: set[Event], subscriber: bool, manual: bool, time_out: int | None,
        end: set[Event] | None,
    ) -> None:  # fmt: skip
        self.members[group.name] = Member(
            group, self.events, set(given), set(given) if subscriber else None, manual, time_out,
            set(given), end,
        )  # fmt: skip

    def somewhere(self) -> tuple[str, set[Event]]:
        """Return any cut of the active segments, and what lies before it."""
        cut = {name: self.random.randint(0, end) for name, end in self.lane.tail().items()}
        return json.dumps(cut), self.events.before(cut)

    def take(self, member: Member, reader: Reader, budget: int = ALL) -> Batch | None:
        """Open a reader's next batch, which may be one that a dead reader left, and return it."""
        left = member.left
        if left is None:
            member.skip()
        batch = reader.open(budget)
        member.perhaps = self.events.now
        if left is not None and not (member.leased and left.reader_id != reader.reader_id):
            assert batch is not None, "what a dead reader left is nobody's"
            assert (batch.batch_id, batch.bounds) == (left.batch_id, left.bounds)
            assert batch.attempt == left.attempt + 1
            with pytest.raises(Fenced):
                commit_batch(self.database, left, lease=LEASE)
        elif batch is not None:
            new = events_of(batch)
            assert not new & member.given, "given twice"
            assert not left or not new & events_of(left), "given twice"
            assert left or not new & self.events.truncated, "given though truncated"
        return batch

    def commit_batch(self, member: Member, reader: Reader, batch: Batch) -> None:
        reader.commit(batch)
        member.given |= events_of(batch)
        member.moved()
        if member.left and member.left.batch_id == batch.batch_id:
            member.left = None

    def read(self) -> None:
        if (member := self.some()) is None:
            return
        reader = member.group.reader(f"reader {self.random.randint(1, 3)}")
        for _ in range(self.random.randint(1, 3)):
            if (batch := self.take(member, reader, self.random.randint(1, 12))) is None:
                break
            self.commit_batch(member, reader, batch)
        if not (member.left and member.left.reader_id == reader.reader_id):
            reader.leave()

    def die(self) -> None:
        """Let a reader die with a batch that it opens or takes over. Another reader has its share
        of the group meanwhile."""
        if (member := self.some()) is None or (member.left and member.leased):
            return
        reader = member.group.reader(f"reader {self.random.randint(1, 4)}")
        other = member.group.reader("other")
        if (batch := self.take(member, reader, self.random.randint(1, 12))) is None:
            reader.leave()
        else:
            member.left, member.leased = batch, True
            member.files = {f.path for f in self.lane.files() if events_in(f) & events_of(batch)}
        if (batch := self.take(member, other, self.random.randint(1, 12))) is not None:
            self.commit_batch(member, other, batch)
        other.leave()

    def checkpoint(self) -> None:
        for member in self.members.values():
            if self.random.random() < 0.7:
                self.checkpoint_of(member)

    def checkpoint_of(self, member: Member) -> None:
        if (made := member.group.checkpoint()) is not None:
            member.checkpoints[made["checkpoint"]] = set(member.given)
        if member.released is not None and not member.manual:
            member.released |= member.given

    def release(self) -> None:
        """Release by hand: to the group's own position, one of its checkpoints, or any cut."""
        by_hand = [m for m in self.members.values() if m.manual and m.released is not None]
        if not by_hand:
            return
        member, other = self.random.choice(by_hand), self.random.choice([*self.members.values()])
        within, passed = self.somewhere()
        places = {
            "position": member.given,
            "tail": self.events.all(),
            within: passed,
            json.dumps(other.group.cut()): other.given,
        }
        if member.checkpoints:
            name = self.random.choice(list(member.checkpoints))
            places[f"checkpoint {name}"] = member.checkpoints[name]
        at = self.random.choice([*places, within, within])
        self.release_of(member, at, places[at])

    def release_of(self, member: Member, at: str, passed: set[Event]) -> None:
        try:
            release(self.database, member.name, at, request_id=unique("release"))
        except (InvalidInput, Truncated):
            return  # behind what it has released already, or even pruned
        assert member.released is not None
        assert member.released <= passed, "what was released is held again"
        member.released, member.said = set(passed), self.events.now

    def switch(self) -> None:
        """Make a subscriber none, or the other way round; or let it release in the other way."""
        if (member := self.some()) is None:
            return
        how: dict[str, Any] = {"subscriber": member.released is None}
        if member.released is not None and self.random.random() < 0.4:
            how = {"release": "automatic" if member.manual else "manual"}
        try:
            update_reader_group(
                self.database, member.name, **how, allow_loss=True, request_id=unique("update")
            )
        except Truncated:
            assert member.released is None
            assert member.gap()
            return
        if "release" in how:
            member.manual = not member.manual
            member.said = self.events.now
        elif how["subscriber"]:
            assert not member.gap()
            member.released = set(member.given)
            member.moved()
            member.said = self.events.now
        else:
            member.released = None

    def reset(self) -> None:
        if (member := self.some()) is None:
            return
        places = {
            "start": member.start,
            "head": set(self.events.truncated),
            "tail": self.events.all(),
        }
        to = self.random.choice(list(places))
        gap = self.events.truncated - places[to]
        if member.end is not None:
            gap &= member.end
        try:
            reset_reader_group(
                self.database, member.name, to, allow_repeat=True, allow_loss=True,
                request_id=unique("reset"),
            )  # fmt: skip
        except Truncated as error:
            refused = str(error)
            assert gap or "[events_truncated]" in refused
            return
        assert not gap
        member.place(places[to])

    def fork(self) -> None:
        if (member := self.some()) is None or len(self.members) > 4:
            return
        name = unique("fork")
        try:
            fork_reader_group(
                self.database, member.name, name, subscriber=True, allow_loss=True, request_id=name
            )  # fmt: skip
        except Truncated:
            assert member.gap()
            return
        assert not member.gap()
        made = Group(self.database, name, (self.lane,))
        end = None if member.end is None else member.end | member.given
        self.enter(made, member.given, True, member.manual, member.time_out, end)

    def delete(self) -> None:
        if (member := self.some()) is not None:
            self.delete_one(member)

    def delete_one(self, member: Member) -> None:
        delete_reader_group(self.database, member.name, request_id=unique("delete"))
        del self.members[member.name]
