"""Random schedules of appends, late appends, scales, reads, checkpoints, releases by hand, forks,
resets, groups that come, go, die, have heirs, come back and become subscribers or no subscribers;
and of captures, retention under all policies, pruning and deleting. Beside a model (model.py) that
knows which event each group was given.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.controller.support import Lane, database_for_many, staged, unique
from tests.reader_groups.support import LEASE, Group, Reader
from tests.retention.model import DAY, Event, Events, Member, events_of
from tests.retention.test_subscribers import pass_time
from weir.controller.commit import commit
from weir.controller.transactions import Attempt, abort
from weir.controller.update import update_stream
from weir.errors import Fenced, InvalidInput, Truncated
from weir.garbage import installation, sweep
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.batches import Batch, commit_batch
from weir.reader_groups.changes import (
    delete_reader_group,
    fork_reader_group,
    reset_reader_group,
    update_reader_group,
)
from weir.retention.capture import capture
from weir.retention.prune import prune
from weir.retention.run import retain
from weir.retention.subscribers import release
from weir.storage import Database
from weir.warehouse import mark

ROUNDS = 8
NO_LIMITS: dict[str, Any] = dict.fromkeys(
    ["retain_min_age", "retain_max_age", "retain_min_bytes", "retain_max_bytes"]
)


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    with database_for_many(postgres_server, "schedules") as opened:
        yield opened


@pytest.fixture(scope="module")
def warehouse(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each data file is a byte."""
    folder = tmp_path_factory.mktemp("warehouse")
    mark(str(folder), installation(database)[0], 0)
    return folder


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

    def commit(self, attempt: Attempt, written: Mapping[str, int]) -> None:
        made = staged(attempt, written)
        for file in made.files:
            path = self.warehouse / file.path
            path.parent.mkdir(parents=True)
            path.write_bytes(b"1")
        commit(self.database, made)
        self.came()

    def came(self) -> None:
        self.captured = False
        self.events.look()

    def append(self) -> None:
        self.append_by(self.lane.opened())

    def append_by(self, attempt: Attempt) -> None:
        """To some segments of the epoch in which it began."""
        names = [segment.name for segment in attempt.segments]
        chosen = self.random.sample(names, self.random.randint(1, len(names)))
        self.commit(attempt, {name: self.random.randint(1, 4) for name in chosen})

    def append_late(self) -> None:
        """Begin an append, or end one that began earlier, perhaps in an epoch that is over."""
        if not self.late or self.random.random() < 0.3:
            self.late.append(self.lane.opened())
        elif self.random.random() < 0.8:
            self.append_by(self.late.pop(0))
        else:
            attempt = self.late.pop(0)
            path = self.warehouse / attempt.folder / "part"
            path.parent.mkdir(parents=True)
            path.write_bytes(b"1")
            abort(self.database, attempt)

    def scale(self) -> None:
        active = self.lane.active()
        first = self.random.randrange(len(active))
        self.lane.scale(*active[first : first + self.random.randint(1, 2)],
                        parts=self.random.randint(1, 2))  # fmt: skip
        self.came()

    def choose_policy(self) -> None:
        def pair(most: int) -> tuple[int | None, int | None]:
            low = self.random.choice([None, self.random.randint(1, most)])
            high = self.random.choice([None, self.random.randint(low or 1, 2 * most)])
            return low, high

        ages, sizes = pair(DAY), pair(80)
        if self.random.random() < 0.3:
            ages = sizes = (None, None)
        self.set_policy({
            "retain_by_consumption": self.random.random() < 0.85,
            "retain_min_age": ages[0], "retain_max_age": ages[1],
            "retain_min_bytes": sizes[0], "retain_max_bytes": sizes[1],
        })  # fmt: skip

    def set_policy(self, policy: dict[str, Any]) -> None:
        update_stream(self.database, self.lane.name, policy, request_id=unique("policy"))
        self.policy = policy

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
            "release": self.random.choices(["automatic", "manual"], (3, 1))[0],
            **options,
        }
        group = Group.made(self.lane, on_gap="skip", **how)
        given = self.events.all() if how["start"] == "tail" else self.events.truncated
        self.enter(group, given, how["subscriber"], how["release"] == "manual", how["time_out"])

    def enter(
        self, group: Group, given: set[Event], subscriber: bool, manual: bool, time_out: int | None
    ) -> None:
        self.members[group.name] = Member(
            group, self.events, set(given), set(given) if subscriber else None, manual, time_out,
            set(given),
        )  # fmt: skip

    def take(self, member: Member, reader: Reader) -> Batch | None:
        """A reader's next batch, which may be one that a dead reader left."""
        left = member.left
        if left is None:
            member.skip()
        batch = reader.open(budget=self.random.randint(1, 12))
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
            if (batch := self.take(member, reader)) is None:
                break
            self.commit_batch(member, reader, batch)
        if not (member.left and member.left.reader_id == reader.reader_id):
            reader.leave()

    def die(self) -> None:
        """A reader opens a batch, or is the heir of one, and is never seen again."""
        if (member := self.some()) is None or (member.left and member.leased):
            return
        reader = member.group.reader(f"reader {self.random.randint(1, 3)}")
        if (batch := self.take(member, reader)) is None:
            reader.leave()
            return
        given = events_of(batch)
        files = frozenset(
            file.path
            for file in self.lane.files()
            if any(
                (file.segment_id, file.start_offset + i) in given for i in range(file.events)
            )
        )  # fmt: skip
        member.left, member.leased, member.files = batch, True, files

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
        """By hand: to its own position, one of its checkpoints, or any cut."""
        by_hand = [m for m in self.members.values() if m.manual and m.released is not None]
        if not by_hand:
            return
        member, other = self.random.choice(by_hand), self.random.choice([*self.members.values()])
        places = {
            "position": member.given,
            "tail": self.events.all(),
            json.dumps(other.group.cut()): other.given,
        }
        if member.checkpoints:
            name = self.random.choice(list(member.checkpoints))
            places[f"checkpoint {name}"] = member.checkpoints[name]
        at = self.random.choice(list(places))
        self.release_of(member, at, places[at])

    def release_of(self, member: Member, at: str, passed: set[Event]) -> None:
        try:
            release(self.database, member.name, at, request_id=unique("release"))
        except InvalidInput:
            return  # behind what it has released already
        assert member.released is not None
        assert member.released <= passed, "what was released is held again"
        member.released = set(passed)

    def switch(self) -> None:
        """A subscriber becomes none, or the other way round; or releases in the other way."""
        if (member := self.some()) is None:
            return
        how: dict[str, Any] = {"subscriber": member.released is None}
        if member.released is not None and self.random.random() < 0.4:
            how = {"release": "automatic" if member.manual else "manual"}
        try:
            update_reader_group(self.database, member.name, **how, request_id=unique("update"))
        except Truncated:
            assert member.released is None
            assert member.gap()
            return
        if "release" in how:
            member.manual = not member.manual
        elif how["subscriber"]:
            assert not member.gap()
            member.released = set(member.given)
            member.moved()
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
        try:
            reset_reader_group(
                self.database, member.name, to, allow_repeat=True, request_id=unique("reset")
            )
        except (Truncated, InvalidInput):  # or even pruned
            assert self.events.truncated - places[to]
            return
        assert not self.events.truncated - places[to]
        member.place(places[to])

    def fork(self) -> None:
        if (member := self.some()) is None or len(self.members) > 4:
            return
        name = unique("fork")
        try:
            fork_reader_group(
                self.database, member.name, name, subscriber=True, request_id=name
            )  # fmt: skip
        except Truncated:
            assert member.gap()
            return
        assert not member.gap()
        made = Group(self.database, name, (self.lane,))
        self.enter(made, member.given, True, member.manual, member.time_out)

    def delete(self) -> None:
        if (member := self.some()) is not None:
            delete_reader_group(self.database, member.name, request_id=unique("delete"))
            del self.members[member.name]

    # What retention does, and what must be so then.

    def retain(self) -> dict[str, Any] | None:
        """One run, of all that is due or of this stream; what it truncated is nobody's loss, or is
        recorded as such."""
        [dry] = self.lane.rows("SELECT * FROM retention_dry_run(:n)", n=str(self.lane.name))
        names = [self.lane.name] if self.random.random() < 0.2 else None
        reports = retain(self.database, names)
        report = next((r for r in reports if r["stream"] == str(self.lane.name)), None)
        if report is None:
            # What has come since the last capture is looked at after the next.
            assert dry.cut is None or not self.captured, "something was to be done and not due"
            return None
        assert "error" not in report, report
        assert (dry.rule, dry.cut) == (report["rule"], report["cut"])
        assert (dry.events, dry.bytes) == (report["events"], report["bytes"])
        assert dry.left_out == report["left_out"]
        for member in self.members.values():
            assert member.is_left_out() in (None, member.name in report["left_out"]), member.name
        before = self.events.truncated
        gone = self.events.before(self.lane.head())
        assert before <= gone, "the head went back"
        assert len(gone - before) == report["events"]
        self.events.truncated = gone
        self.check_losses(report, gone - before)
        self.check_freed(report)
        return report

    def check_losses(self, report: dict[str, Any], new: set[Event]) -> None:
        """Who lost what it had not read is recorded, and something allowed it."""
        lost: dict[str, int] = {}
        for name, member in self.members.items():
            if member.released is None or not new - member.given:
                continue
            lost[name] = len(new - member.given)
            allowed = report["rule"].startswith("max") or name in report["left_out"]
            if not allowed and self.policy["retain_by_consumption"]:
                assert new <= member.given | member.released, report
        assert report["lost"] == lost
        if report["cut"]:
            [row] = self.lane.rows(
                """SELECT rule, cut, events, lost FROM retention_decision WHERE stream_id = :s
                ORDER BY decided_at DESC LIMIT 1"""
            )
            assert row._asdict() == {key: report[key] for key in ("rule", "cut", "events", "lost")}

    def check_freed(self, report: dict[str, Any]) -> None:
        """What all have released and no minimum keeps is gone."""
        minimum = self.policy["retain_min_age"] or self.policy["retain_min_bytes"]
        released = [
            member.released
            for member in self.members.values()
            if member.released is not None and member.name not in report["left_out"]
        ]
        if self.policy["retain_by_consumption"] and released and not minimum:
            assert set.intersection(*released) <= self.events.truncated

    def sweep(self) -> None:
        """What lies on disk is what is there, and what those need that read it still."""
        sweep(self.database, str(self.warehouse), 0.0)
        folder = self.warehouse / str(self.lane.stream_id)
        found = {str(p.relative_to(self.warehouse)) for p in folder.rglob("*") if p.is_file()}
        known = {file.path for file in self.lane.files()}
        reading = [m for m in self.members.values() if m.left]
        needed = {file for m in reading if m.leased for file in m.files}
        assert known | needed <= found
        if not reading:
            assert found == known
            assert self.lane.rows("SELECT path FROM garbage WHERE stream_id = :s") == []

    def run(self) -> None:
        self.events.look()
        for _ in range(self.random.randint(1, 3)):
            self.subscribe()
        self.choose_policy()
        for _ in range(ROUNDS):
            for step, chance in (
                (self.append, 0.7), (self.append_late, 0.2), (self.scale, 0.2),
                (self.capture, 0.7), (self.time, 0.4), (self.read, 0.6), (self.die, 0.15),
                (self.read, 0.6), (self.checkpoint, 0.6), (self.release, 0.3),
                (self.capture, 0.3), (self.retain, 0.7), (self.prune, 0.1), (self.sweep, 0.1),
            ):  # fmt: skip
                if self.random.random() < chance:
                    step()
            if self.random.random() < 0.5:
                others = (
                    self.subscribe, self.fork, self.reset, self.delete, self.choose_policy,
                    self.switch,
                )  # fmt: skip
                self.random.choices(others, (2, 1, 1, 1, 1, 2))[0]()
        self.end()

    def end(self) -> None:
        """Once everybody has read and released everything, and nothing is kept, all is freed."""
        for attempt in self.late:
            self.append_by(attempt)
        for member in self.members.values():
            if member.left:  # its reader comes back
                reader = member.group.reader(member.left.reader_id)
                if (batch := self.take(member, reader)) is not None:
                    self.commit_batch(member, reader, batch)
                reader.leave()
            cut = member.group.cut()
            assert self.events.before(cut) == member.given, cut
        self.sweep()
        self.set_policy({**NO_LIMITS, "retain_by_consumption": True})
        if all(member.released is None for member in self.members.values()):
            self.subscribe(subscriber=True)
        for member in self.members.values():
            reader = member.group.reader("last")
            while (batch := self.take(member, reader)) is not None:
                self.commit_batch(member, reader, batch)
            assert member.given == self.events.all()
            assert member.group.lost() == member.skipped
            self.checkpoint_of(member)
            if member.manual and member.released is not None:
                self.release_of(member, "tail", member.given)
        self.capture()
        while (report := self.retain()) is not None and report["cut"]:
            pass
        assert self.lane.head() == self.lane.tail()
        assert self.lane.files() == []
        self.sweep()
        self.prune()
        assert set(self.lane.sizes()) == set(self.lane.tail())


def play(database: Database, warehouse: Path, seed: int) -> None:
    random = Random(seed)
    lane = Lane.made(database, segments=random.randint(1, 3))
    Schedule(lane, warehouse, random, Events(lane)).run()


def play_all(database: Database, warehouse: Path, seeds: range) -> None:
    for seed in seeds:
        try:
            play(database, warehouse, seed)
        except Exception as error:
            raise AssertionError(f"in the schedule of seed {seed}") from error


@pytest.mark.parametrize("block", range(10))
def test_nothing_unread_is_lost_unrecorded_and_what_all_have_read_is_freed(
    database: Database, warehouse: Path, block: int
) -> None:
    play_all(database, warehouse, range(20 * block, 20 * block + 20))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(200))
def test_ten_thousand_schedules(database: Database, warehouse: Path, block: int) -> None:
    first = int(os.environ.get("WEIR_SOAK_SEED", "0")) * 10_000 + 50 * block
    play_all(database, warehouse, range(first, first + 50))
