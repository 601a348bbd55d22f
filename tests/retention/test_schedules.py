"""Random schedules of appends, late appends, scales, reads, checkpoints, releases by hand, forks,
resets, truncations by hand, groups that come, go, die, have heirs, come back, stop for good and
become subscribers or no subscribers; and of captures, retention under all policies, pruning and
deleting. Beside a model (model.py) that
knows which event each group was given.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.retention.model import Event, Events, Member, events_in
from tests.retention.schedule import LIMITS, Schedule
from tests.retention.tables import check_decision
from tests.world.garbage import sweep
from tests.world.streams import Lane, database_of_file
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.retention.run import retain
from weir.warehouse.marker import Marker, write_marker

ROUNDS = 8


database = database_of_file


@pytest.fixture(scope="module")
def warehouse(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each data file is a byte."""
    folder = tmp_path_factory.mktemp("warehouse")
    write_marker(str(folder), Marker(read_installation(database).installation_id))
    return folder


class Judged(Schedule):
    """A schedule of which retention is a part, and what must be so then."""

    def retain(self) -> Mapping[str, Any] | None:
        """One run, of all that is due or of this stream; what it truncated is nobody's loss, or is
        recorded as such."""
        [dry] = self.lane.rows("SELECT * FROM retention_dry_run(:n)", n=str(self.lane.name))
        [decided] = self.lane.rows("SELECT * FROM decide_retention(:s)")
        check_decision(self.events, decided)
        names = [self.lane.name] if self.random.random() < 0.2 else None
        foreseen = {r.stream: r for r in self.lane.rows("SELECT * FROM next_retention")}
        reports = retain(self.database, names)
        if names is None:
            self.check_foreseen(foreseen, reports)
        report = next((r for r in reports if r["stream"] == str(self.lane.name)), None)
        if report is None:
            # What has come since the last capture is looked at after the next; and once a record at
            # the head is pruned, another may stand for a minimum, with nothing but empty segments
            # between them.
            assert not dry.events or not self.captured, "something was to be done and not due"
            return None
        assert "error" not in report, report
        assert (dry.rule, dry.cut) == (report["rule"], report["cut"])
        assert (dry.events, dry.bytes) == (report["events"], report["bytes"])
        for said in ("timed_out", "held_by", "lost", "reason"):
            assert getattr(dry, said) == report[said]
        for member in self.members.values() if self.policy["retention"] == "consumed" else ():
            assert member.has_timed_out() in (None, member.name in report["timed_out"]), member.name
        before = self.events.truncated
        gone = self.events.before(self.lane.head())
        assert before <= gone, "the head went back"
        assert len(gone - before) == report["events"]
        released = self.released_by_all(report)
        finished = {m.name for m in self.subscribers(report) if m.has_finished()}
        self.events.truncated = gone
        self.check_limits(report, gone - before, released)
        self.check_losses(report, gone - before, finished)
        self.check_freed(report, released)
        return report

    def check_foreseen(
        self, foreseen: Mapping[str, Any], reports: Sequence[Mapping[str, Any]]
    ) -> None:
        """Who looked before a run knew of which streams it would decide, and what."""
        reports = [report for report in reports if report["rule"] != "keep"]
        assert set(foreseen) == {report["stream"] for report in reports}
        for report in reports:
            row = foreseen[report["stream"]]
            assert row.head == report["cut"]
            for said in ("rule", "reason", "events", "bytes", "held_by", "timed_out", "lost"):
                assert getattr(row, said) == report[said], said

    def subscribers(self, report: Mapping[str, Any]) -> list[Member]:
        """Those that have not timed out."""
        timed_out = report["timed_out"]
        return [
            m for m in self.members.values() if m.released is not None and m.name not in timed_out
        ]

    def released_by_all(self, report: Mapping[str, Any]) -> set[Event]:
        """Nothing without subscribers. Who has finished leaves the rest to the others; if all have,
        what any of them has released may go."""
        if self.policy["retention"] != "consumed":
            return set()
        subscribers = self.subscribers(report)
        holders = [m.released or set() for m in subscribers if not m.has_finished()]
        if not holders:
            return set().union(*(m.released or set() for m in subscribers))
        return set.intersection(*holders)

    def check_limits(
        self, report: Mapping[str, Any], new: set[Event], released: set[Event]
    ) -> None:
        """No minimum is undercut, and a maximum that is named was exceeded: by all that it takes
        from subscribers, up to what came within an hour."""
        age = {event: self.events.now - since for event, since in self.events.since.items()}
        left = self.events.all() - self.events.truncated
        if new and (least := self.policy["retain_min_age"]):
            assert all(age[event] >= least - 60 for event in new), report
        if new and (least := self.policy["retain_min_bytes"]):
            assert 10 * len(left) >= least, report
        # A maximum takes what is unread only if the unread alone exceeds it.
        unread = (left | new) - released
        if report["rule"] == "max_age":
            assert all(age[e] >= self.policy["retain_max_age"] - 3660 for e in new - released)
            if new - released:  # else it has passed ends of segments only
                assert any(age[e] >= self.policy["retain_max_age"] - 60 for e in unread), report
        if report["rule"] == "max_bytes":
            assert 10 * len(unread) > self.policy["retain_max_bytes"], report

    def check_losses(self, report: Mapping[str, Any], new: set[Event], finished: set[str]) -> None:
        """Who lost what it had not read is recorded, and something allowed it."""
        lost: dict[str, int] = {}
        for name, member in self.members.items():
            if member.released is None:
                continue
            if member.wants(new):
                lost[name] = len(member.wants(new))
            allowed = report["rule"].startswith("max") or name in report["timed_out"]
            if not allowed and self.policy["retention"] == "consumed" and name not in finished:
                assert new <= member.released, report
        assert report["lost"] == lost
        if report["cut"]:
            [row] = self.lane.rows(
                """SELECT rule, cut, events, lost FROM retention_decision WHERE stream_id = :s
                ORDER BY decided_at DESC LIMIT 1"""
            )
            self.check_files()
            assert row._asdict() == {key: report[key] for key in ("rule", "cut", "events", "lost")}

    def check_freed(self, report: Mapping[str, Any], released: set[Event]) -> None:
        """What all have released and no minimum keeps is gone."""
        if report["rule"].startswith("max"):
            return  # it truncates where it says, and the rest goes in the next run
        minimum = self.policy["retain_min_age"] or self.policy["retain_min_bytes"]
        if not minimum:
            assert released <= self.events.truncated

    def sweep(self) -> None:
        """What lies on disk is what is there, and what those need that read it still."""
        sweep(self.database, str(self.warehouse), 0.0)
        folder = self.warehouse / str(self.lane.stream_id)
        found = {str(p.relative_to(self.warehouse)) for p in folder.rglob("*") if p.is_file()}
        known = self.check_files()
        reading = [m for m in self.members.values() if m.left]
        needed = {file for m in reading if m.leased for file in m.files}
        assert known | needed <= found
        if not reading:
            assert found == known
            assert self.lane.rows("SELECT path FROM garbage WHERE stream_id = :s") == []

    def check_files(self) -> set[str]:
        """The files that are there: those of all that is not truncated, and of nothing else."""
        files = {file.path: events_in(file) for file in self.lane.files()}
        there = self.events.all() - self.events.truncated
        assert there <= set().union(*files.values()), "not truncated, and gone"
        assert all(events & there for events in files.values()), "truncated, and kept"
        return set(files)

    def alone(self, step: Callable[[], None]) -> None:
        """Sometimes nothing else makes retention look at the stream again."""
        alone = self.random.random() < 0.4
        if alone:
            self.settle()
        step()
        if alone:
            self.retain()

    def settle(self) -> None:
        """Until nothing more is to be done."""
        self.capture()
        while (report := self.retain()) is not None and report["cut"]:
            pass

    def run(self) -> None:
        self.events.look()
        for _ in range(self.random.randint(1, 3)):
            self.subscribe()
        self.choose_policy()
        for _ in range(ROUNDS):
            steps = [
                (self.append, 0.7), (self.append_late, 0.3), (self.scale, 0.25),
                (self.capture, 0.7), (self.time, 0.4), (self.read, 0.6), (self.read, 0.6),
                (self.die, 0.2), (self.checkpoint, 0.6), (self.release, 0.3), (self.retain, 0.7),
                (self.retain, 0.3), (self.prune, 0.1), (self.sweep, 0.1),
            ]  # fmt: skip
            if self.random.random() < 0.4:
                self.random.shuffle(steps)
            for step, chance in steps:
                if self.random.random() < chance:
                    step()
            if self.random.random() < 0.5:
                others = (
                    self.subscribe, self.fork, self.reset, self.delete, self.choose_policy,
                    self.switch, self.release, self.truncate,
                )  # fmt: skip
                self.alone(self.random.choices(others, (2, 1, 1, 1, 1, 2, 1, 1))[0])
        self.end()

    def end(self) -> None:
        """Once everybody has read and released everything, and nothing is kept, all is freed."""
        for attempt in self.late:
            self.commit_late(attempt)
        for member in self.members.values():
            if member.left:  # its reader comes back
                reader = member.group.reader(member.left.reader_id)
                if (batch := self.take(member, reader)) is not None:
                    self.commit_batch(member, reader, batch)
                reader.leave()
            cut = member.group.cut()
            assert self.events.before(cut) == member.given, cut
        self.sweep()
        self.set_policy({**dict.fromkeys(LIMITS), "retention": "consumed"})
        if all(m.released is None or m.end is not None for m in self.members.values()):
            self.subscribe(subscriber=True)
        for member in self.members.values():
            reader = member.group.reader("last")
            while (batch := self.take(member, reader)) is not None:
                self.commit_batch(member, reader, batch)
            assert not member.wants(self.events.all())
            assert member.group.lost() == member.skipped
            self.checkpoint_of(member)
            if member.manual and member.released is not None:
                self.release_of(member, "tail", self.events.all())
        self.settle()
        assert self.lane.head() == self.lane.tail()
        assert self.lane.files() == []
        self.sweep()
        for member in list(self.members.values()):
            if member.end is not None:  # it stands where it stopped
                self.delete_one(member)
        self.prune()
        assert set(self.lane.sizes()) == set(self.lane.tail())


def play(database: Database, warehouse: Path, case: int) -> None:
    random = random_for(case)
    lane = Lane.made(database, segments=random.randint(1, 3), retention="consumed")
    Judged(lane, warehouse, random, Events(lane)).run()


def play_all(database: Database, warehouse: Path, cases: range) -> None:
    for case in cases:
        try:
            play(database, warehouse, case)
        except Exception as error:
            raise AssertionError(f"in schedule {case}") from error


@pytest.mark.random
@pytest.mark.parametrize("block", range(cases(5)))
def test_nothing_unread_is_lost_unrecorded_and_what_all_have_read_is_freed(
    database: Database, warehouse: Path, block: int
) -> None:
    play_all(database, warehouse, range(10 * block, 10 * block + cases(10, least=4)))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(200))
def test_ten_thousand_schedules(database: Database, warehouse: Path, block: int) -> None:
    first = 1000 + 50 * block
    play_all(database, warehouse, range(first, first + 50))
