"""Random schedules of appends, scales, reads, checkpoints, forks, resets, subscribers that come,
go, die and come back, and of captures and retention under all policies; beside a model that knows
which event each subscriber was given.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.controller.support import Lane, database_for_many, rows, unique
from tests.reader_groups.support import Group
from tests.retention.test_subscribers import pass_time
from weir.controller.update import update_stream
from weir.errors import Truncated
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.changes import delete_reader_group, fork_reader_group, reset_reader_group
from weir.retention.capture import capture
from weir.retention.run import retain
from weir.segment import parse_segment_name
from weir.storage import Database

Event = tuple[int, int]
DAY = 86400
ROUNDS = 8


@pytest.fixture(scope="module")
def database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
    with database_for_many(postgres_server, "schedules") as opened:
        yield opened


@dataclass
class Schedule:
    """One stream, its subscribers, and what each of them was given."""

    lane: Lane
    random: Random
    given: dict[str, set[Event]] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    lost: dict[str, int] = field(default_factory=dict)
    truncated: set[Event] = field(default_factory=set)

    def ranges(self) -> dict[int, tuple[float, float, int]]:
        found = self.lane.rows(
            """SELECT segment_id, key_low, key_high, coalesce(tail_offset, s.events) AS n
            FROM segment s LEFT JOIN segment_tail t USING (stream_id, segment_id)
            WHERE stream_id = :s"""
        )
        return {row.segment_id: (row.key_low, row.key_high, row.n) for row in found}

    def before(self, cut: dict[str, Any]) -> set[Event]:
        """The events that a cut has passed, key range by key range."""
        ranges = self.ranges()
        entries = {parse_segment_name(name): offset for name, offset in cut.items()}
        passed: set[Event] = set()
        for segment, (low, high, count) in ranges.items():
            older = any(e < segment and ranges[e][0] < high and ranges[e][1] > low for e in entries)
            own = entries.get(segment, count)
            if not older and own != "future":
                passed |= {(segment, i) for i in range(own)}
        return passed

    # What happens.

    def append(self) -> None:
        active = self.lane.active()
        chosen = self.random.sample(active, self.random.randint(1, len(active)))
        self.lane.append({name: self.random.randint(1, 4) for name in chosen})

    def scale(self) -> None:
        active = self.lane.active()
        first = self.random.randrange(len(active))
        self.lane.scale(*active[first : first + self.random.randint(1, 2)],
                        parts=self.random.randint(1, 2))  # fmt: skip

    def subscribe(self) -> None:
        how = {
            "start": self.random.choice(["head", "tail"]),
            "time_out": self.random.choice([None, DAY]),
            "on_gap": "skip",
        }
        group = Group.made(self.lane, **how)
        self.enter(group, self.before(group.cut()))

    def enter(self, group: Group, given: set[Event]) -> None:
        self.groups[group.name], self.given[group.name] = group, given
        self.lost[group.name] = 0

    def some(self) -> Group | None:
        return self.random.choice(list(self.groups.values())) if self.groups else None

    def read(self) -> None:
        if (group := self.some()) is None:
            return
        reader = group.reader(f"reader {self.random.randint(1, 2)}")
        for _ in range(self.random.randint(1, 3)):
            batch = reader.open(budget=self.random.randint(1, 12))
            if batch is None:
                break
            new = {(b.segment_id, i) for b in batch.bounds for i in range(b.start, b.end)}
            assert not new & self.given[group.name], "given twice"
            assert not new & self.truncated, "given though truncated"
            reader.commit(batch)
            self.given[group.name] |= new
        reader.leave()

    def checkpoint(self) -> None:
        for group in self.groups.values():
            if self.random.random() < 0.7:
                group.checkpoint()

    def reset(self) -> None:
        if (group := self.some()) is None:
            return
        to = self.random.choice(["start", "head", "tail"])
        try:
            reset_reader_group(
                self.lane.database, group.name, to, allow_repeat=True, request_id=unique("reset")
            )
        except Truncated:
            return
        self.given[group.name] = self.before(group.cut())

    def fork(self) -> None:
        if (group := self.some()) is None or len(self.groups) > 4:
            return
        name = unique("fork")
        try:
            fork_reader_group(
                self.lane.database, group.name, name, subscriber=True, request_id=name
            )
        except Truncated:
            return
        made = Group(self.lane.database, name, (self.lane,))
        self.enter(made, self.before(made.cut()))
        rows_ = "UPDATE reader_group SET on_gap = 'skip' WHERE name = :n RETURNING 1"
        rows(self.lane.database, rows_, n=name)

    def delete(self) -> None:
        if (group := self.some()) is not None:
            delete_reader_group(self.lane.database, group.name, request_id=unique("delete"))
            del self.groups[group.name]

    def policy(self) -> None:
        def pair(most: int) -> tuple[int | None, int | None]:
            low = self.random.choice([None, self.random.randint(1, most)])
            high = self.random.choice([None, self.random.randint(low or 1, 2 * most)])
            return low, high

        ages, sizes = pair(DAY), pair(80)
        if self.random.random() < 0.3:
            ages = sizes = (None, None)
        changes = {
            "retain_by_consumption": self.random.random() < 0.85,
            "retain_min_age": ages[0], "retain_max_age": ages[1],
            "retain_min_bytes": sizes[0], "retain_max_bytes": sizes[1],
        }  # fmt: skip
        update_stream(self.lane.database, self.lane.name, changes, request_id=unique("policy"))

    def time(self) -> None:
        pass_time(self.lane, self.random.choice([0.1, 0.6, 1.1]) * DAY)

    def capture(self) -> None:
        capture(self.lane.database)

    def retain(self) -> dict[str, Any]:
        """One run; what it truncated is nobody's loss, or is recorded as such."""
        released = {n: g.published() or {} for n, g in self.groups.items()}
        [dry] = self.lane.rows("SELECT * FROM retention_dry_run(:n)", n=str(self.lane.name))
        [report] = retain(self.lane.database, [self.lane.name])
        assert (dry.rule, dry.cut) == (report["rule"], report["cut"])
        assert (dry.events, dry.bytes) == (report["events"], report["bytes"])
        assert dry.left_out == report["left_out"]
        assert "error" not in report, report
        gone = self.before(self.lane.head())
        new = gone - self.truncated
        assert self.truncated <= gone, "the head went back"
        assert len(new) == report["events"]
        lost = {n: len(new - self.given[n]) for n in self.groups}
        assert report["lost"] == {n: count for n, count in lost.items() if count}
        consumption = self.lane.value(
            "SELECT retain_by_consumption FROM stream WHERE stream_id = :s"
        )
        for name in report["lost"]:
            allowed = report["rule"].startswith("max") or name in report["left_out"]
            assert allowed or not consumption, report
            self.lost[name] += lost[name]
        # What is truncated counts as given from here on: the group skips it, counted.
        for name in self.groups:
            self.given[name] |= new
        self.truncated = gone
        self.frees_what_all_released(report, released, consumption)
        return report

    def frees_what_all_released(
        self, report: dict[str, Any], released: dict[str, dict[str, Any]], consumption: bool
    ) -> None:
        limits = self.lane.rows(
            """SELECT retain_min_age, retain_min_bytes FROM stream WHERE stream_id = :s"""
        )[0]
        holding = [cut for n, cut in released.items() if n not in report["left_out"]]
        if not consumption or not holding or any(limit is not None for limit in limits):
            return
        passed = set.intersection(*[self.before(cut) | self.truncated for cut in holding])
        assert passed <= self.truncated, "all have released it, and no minimum keeps it"

    def run(self) -> None:
        for _ in range(self.random.randint(1, 3)):
            self.subscribe()
        self.policy()
        for _ in range(ROUNDS):
            for step, chance in (
                (self.append, 0.8), (self.scale, 0.2), (self.capture, 0.7), (self.time, 0.4),
                (self.read, 0.6), (self.read, 0.6), (self.checkpoint, 0.7), (self.capture, 0.3),
                (self.retain, 0.7),
            ):  # fmt: skip
                if self.random.random() < chance:
                    step()
            if self.random.random() < 0.4:
                others = (self.subscribe, self.fork, self.reset, self.delete, self.policy)
                self.random.choices(others, (2, 1, 1, 1, 1))[0]()
        self.end()

    def end(self) -> None:
        """Once everybody has read and released everything, and nothing is kept, all is freed."""
        limits = dict.fromkeys(
            ["retain_min_age", "retain_max_age", "retain_min_bytes", "retain_max_bytes"]
        )
        update_stream(
            self.lane.database, self.lane.name, {**limits, "retain_by_consumption": True},
            request_id=unique("policy"),
        )  # fmt: skip
        if not self.groups:
            self.subscribe()
        for group in self.groups.values():
            reader = group.reader("last")
            while (batch := reader.open()) is not None:
                reader.commit(batch)
            group.checkpoint()
            # What its readers skipped was recorded before as lost to it.
            assert group.lost() <= self.lost[group.name]
            self.given[group.name] |= {
                (s, i) for s, (_, _, n) in self.ranges().items() for i in range(n)
            }
        self.retain()
        assert self.lane.head() == self.lane.tail()
        assert self.lane.files() == []


def play(database: Database, seed: int) -> None:
    random = Random(seed)
    Schedule(Lane.made(database, segments=random.randint(1, 3)), random).run()


def play_all(database: Database, seeds: range) -> None:
    for seed in seeds:
        try:
            play(database, seed)
        except Exception as error:
            raise AssertionError(f"in the schedule of seed {seed}") from error


@pytest.mark.parametrize("block", range(10))
def test_nothing_unread_is_lost_unrecorded_and_what_all_have_read_is_freed(
    database: Database, block: int
) -> None:
    play_all(database, range(10 * block, 10 * block + 10))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", range(200))
def test_ten_thousand_schedules(database: Database, block: int) -> None:
    first = int(os.environ.get("WEIR_SOAK_SEED", "0")) * 10_000 + 50 * block
    play_all(database, range(first, first + 50))
