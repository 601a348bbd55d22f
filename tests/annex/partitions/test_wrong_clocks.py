"""Hours that are announced beside a model of them: events and statements at random distances, in
either direction, taken back and late. The model knows no rule of Weir but what the docs promise."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

import pyarrow as pa
import pytest

from tests.annex.partitions.test_partitions import announce
from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.streams import rows, unique
from weir.controller.announcements import watch
from weir.controller.completeness import state_completeness
from weir.controller.streams import create_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import StreamName, stream_name
from weir.programs.opening import shared
from weir.settings import Settings

HOUR, BACK = timedelta(hours=1), timedelta(days=4)
FAR = [timedelta(days=10), timedelta(days=500), timedelta(days=366 * 100)]


@pytest.fixture(autouse=True)
def installed(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_STATE", str(settings.state))
    monkeypatch.setenv("WEIR_DATABASE", settings.database)
    monkeypatch.setenv("WEIR_WAREHOUSE", settings.warehouse)


def hour_of(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


@dataclass
class World:
    """A stream whose writer goes forward from a day ago to now, and what runs were started for."""

    database: Database
    random: Random
    stream: StreamName
    now: datetime = field(default_factory=lambda: datetime.now(UTC) - timedelta(hours=40))
    complete: datetime | None = None  # what the writer has stated, and was not refused
    begun: datetime | None = None  # the first hour that was announced
    events: list[datetime] = field(default_factory=list)
    late: dict[datetime, int] = field(default_factory=dict)  # since the last announcing
    done: set[datetime] = field(default_factory=set)  # the hours that had their run
    ahead: int = 0

    def time(self) -> datetime:
        near = self.now - timedelta(minutes=self.random.randint(0, 150))
        match self.random.randrange(8):
            case 0:
                return self.now - self.random.choice(FAR)
            case 1:
                return datetime.now(UTC) + self.random.choice([HOUR, *FAR])
            case _:
                return near

    def append(self) -> None:
        times = [self.time() for _ in range(self.random.randint(1, 4))]
        done = shared().append(
            str(self.stream), pa.table({"key": ["k"] * len(times), "at": times}), writer_id="w",
            batch_id=unique("batch"),
        )  # fmt: skip
        assert done.events == len(times), "whatever the times are"
        ahead = sum(at > datetime.now(UTC) for at in times)
        assert done.ahead == ahead
        self.ahead += ahead
        if self.complete is not None:
            assert done.behind == sum(at < self.complete - BACK for at in times)
        self.events += times
        for at in times:
            if hour_of(at) in self.done:
                self.late[hour_of(at)] = self.late.get(hour_of(at), 0) + 1

    def state(self) -> None:
        until = self.now - timedelta(minutes=self.random.randint(0, 90))
        state_completeness(self.database, self.stream, "w", until)
        if self.complete is None or until > self.complete:
            self.complete = until

    def state_wrongly(self) -> None:
        until = datetime.now(UTC) + self.random.choice([timedelta(seconds=30), HOUR, *FAR])
        with raises("argument_invalid later than now"):
            if self.random.random() < 0.5:
                state_completeness(self.database, self.stream, "w", until)
            else:  # the usual habit: its greatest event time, of an event that comes with it
                table = pa.table({"key": ["k"], "at": [until]})
                shared().append(
                    str(self.stream), table, writer_id="w", batch_id=unique("batch"),
                    complete_until=until,
                )  # fmt: skip

    def take_back(self) -> None:
        if self.complete is None:
            return
        to = self.complete - timedelta(minutes=self.random.randint(1, 200))
        update_stream(
            self.database, self.stream, {}, complete_until=to.isoformat(), request_id=unique("back")
        )
        self.complete = to
        self.done = {one for one in self.done if one + HOUR <= to}
        self.late = {one: count for one, count in self.late.items() if one in self.done}
        if not self.done:  # then the next hour goes on from there
            self.begun = None if self.begun is None else min(self.begun, hour_of(to))

    def announce(self) -> None:
        fails = self.random.random() < 0.2  # what was not recorded is announced again
        said = announce(fails=fails).get(f"weir {self.stream} hours", {})
        told = {datetime.fromisoformat(key).replace(tzinfo=UTC): one for key, one in said.items()}
        due: set[datetime] = set()
        begun = self.begun
        if self.complete is not None:
            end = hour_of(self.complete)
            if begun is None:
                near = [hour_of(at) for at in self.events if end - BACK <= at < end]
                begun = min(near, default=end)
            at = begun
            while at < end:
                due.add(at)
                at += HOUR
        new = due - self.done
        assert told.keys() == new | self.late.keys(), "each hour that somebody has, no other"
        assert all(told[at]["late"] == count for at, count in self.late.items())
        assert all(told[at]["late"] == 0 for at in new)
        if not fails:
            self.done |= new
            self.late.clear()
            if self.complete is not None and rows(self.database, _SEEN, n=str(self.stream)):
                self.begun = begun

    def step(self) -> None:
        self.now = min(self.now + timedelta(minutes=self.random.randint(0, 150)), datetime.now(UTC))
        self.random.choice(
            [self.append] * 3 + [self.state] * 2 + [self.state_wrongly, self.take_back]
            + [self.announce] * 3
        )()  # fmt: skip
        [found] = rows(
            self.database,
            "SELECT complete_until, ahead_events FROM completeness WHERE stream = :n",
            n=str(self.stream),
        )  # fmt: skip
        assert (found.complete_until, found.ahead_events) == (self.complete, self.ahead)


# Hours begin once: the model asks only whether that has happened.
_SEEN = "SELECT FROM watched_partition WHERE stream_name = :n AND announced_until IS NOT NULL"


@pytest.mark.parametrize("case", range(cases(8)))
def test_each_hour_that_somebody_has_is_announced_and_none_that_nobody_has(
    database: Database, case: int
) -> None:
    stream = stream_name(f"test/{unique('stream')}")
    create_stream(
        database, stream, routing_key="key", segments=2, event_time="at",
        event_time_back=BACK // timedelta(seconds=1), request_id=str(stream),
    )  # fmt: skip
    watch(database, "airflow", [("hours", str(stream))])
    world = World(database, random_for(case), stream)
    for _ in range(25):
        world.step()
    world.now = datetime.now(UTC)
    world.state()
    world.announce()
    world.announce()
