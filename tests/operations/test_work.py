"""Which jobs with a schedule have something to do: found out before anything is started for them,
by the rules by which they find their work."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import text

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.world.adjunct import Store
from tests.world.groups import Group, Reader
from tests.world.streams import Lane, rows, run, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import perform
from weir.operations.work import patience_of, work_of
from weir.programs.opening import shared
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.settings import Settings

JOBS = ("stream_cuts", "adjunct", "checkpoints", "scale", "retention", "upkeep")


def no_spark() -> Any:
    raise AssertionError("this needs no session of Spark")


@dataclass
class World:
    """A stream with a subscriber, as an installation has them."""

    database: Database
    settings: Settings
    lane: Lane
    group: Group
    appended: int = 0

    @classmethod
    def made(cls, database: Database, settings: Settings) -> "World":
        lane = Lane.made(database, retention="consumed")
        world = cls(database, settings, lane, Group.made(lane))
        world.append()
        world.read()
        return world

    def append(self, rows: int = 3) -> None:
        """Append events, with files."""
        self.appended += rows
        table = pa.table({"key": [f"key {n}" for n in range(rows)], "n": [self.appended] * rows})
        shared(self.settings).append(str(self.lane.name), table)

    def reader(self) -> Reader:
        return self.group.reader()

    def read(self) -> None:
        self.reader().read_all()

    def run(self, job: str) -> dict[str, Any]:
        """Run a job as its schedule does."""
        of_run = RunId(f"weir_{job}", unique("run"), job)
        done = Job(job, of_run, self.settings, self.database, start_spark=no_spark)
        return perform(done, ACTIONS[job], {})

    def work(self, *jobs: str) -> dict[str, list[str]]:
        return work_of(self.database, jobs or JOBS, patience_of(self.settings))

    def settle(self) -> None:
        """Let the jobs do all that they have to do."""
        for _ in range(6):
            if not (found := self.work()):
                return
            for job in found:
                self.run(job)
        raise AssertionError(f"there is always something to do: {found}")

    def state(self) -> dict[str, list[str]]:
        """Return what is in all tables, but what runs say of themselves, or of their time."""
        own = {"job_run", "installation", "alembic_version", "owner_history"}
        tables = rows(
            self.database,
            """SELECT relname FROM pg_class WHERE relnamespace = 'weir_internal'::regnamespace
            AND relkind = 'r' AND has_table_privilege(oid, 'SELECT')""",
        )
        return {
            one: [row[0] for row in rows(self.database, f"SELECT t::text FROM {one} t ORDER BY 1")]
            for (one,) in tables
            if one not in own
        }


@pytest.fixture
def world(database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> World:
    """One without Spark, where jobs look at files themselves."""
    monkeypatch.setattr("weir.annex.verification.seams.has_spark", lambda: False)
    return World.made(database, replace(settings, transaction_lease=0.0, reader_lease=0.0))


def test_an_installation_at_rest_has_nothing_to_do_and_a_run_of_its_jobs_changes_nothing(
    world: World,
) -> None:
    world.settle()
    before = world.state()
    for job in JOBS:
        world.run(job)
    assert world.state() == before
    assert not world.work()


def append_and_read(world: World) -> None:
    world.append()
    world.settle()
    world.read()


def gone(world: World) -> None:
    world.reader()
    world.group.lapse("reader")


def waiting(world: World) -> None:
    world.append()
    world.reader().must_open()
    checkpoint(
        world.database, world.group.name, name="noon", barrier=True, request_id=unique("noon")
    )
    run(world.database, "UPDATE reader_group SET moved_at = checkpointed_at")
    assert "checkpoints" not in world.work()
    run(world.database, "UPDATE checkpoint SET expires_at = now() WHERE state = 'waiting'")


def small_files(world: World) -> None:
    for _ in range(20):
        world.append()


def give_up(world: World) -> None:
    """An append whose lease is over."""
    world.lane.opened()
    run(world.database, "UPDATE transaction SET lease_until = now() WHERE state = 'open'")


def leave_rows(world: World) -> None:
    """Rows for a table whose reader is gone."""
    reader = world.reader()
    name = f"g{world.group.group_id}_t{reader.token}_1"
    with_one = "SELECT make_staging(:name, '{n}', '{20}', '{-1}')"
    world.database.transaction(lambda c: c.execute(text(with_one), {"name": name}))
    reader.leave(0.0)


EVENTS: dict[str, tuple[Callable[[World], Any], set[str]]] = {
    "an append": (World.append, {"stream_cuts", "retention"}),
    "a reader that has read": (
        append_and_read, {"checkpoints", "retention"},
    ),
    "a reader that is gone": (gone, {"checkpoints"}),
    "a checkpoint that waits": (waiting, {"checkpoints"}),
    "a new limit of a stream": (
        lambda world: update_stream(
            world.database, world.lane.name, {"retention": "size", "retain_max_bytes": 1},
            request_id="update",
        ),
        {"retention"},
    ),
    "a stream that scales by load": (
        lambda world: update_stream(
            world.database, world.lane.name,
            {"scaling": "event_rate", "target_rate": 10, "scale_factor": 2}, request_id="update",
        ),
        {"scale"},
    ),
    "a store of a stream": (lambda world: Store.made(world.lane), {"adjunct"}),
    "an append that was given up": (
        give_up, {"upkeep"},
    ),
    "garbage": (
        lambda world: run(
            world.database,
            "INSERT INTO garbage (root, path, reason) VALUES ('', 'nowhere', 'aborted')",
        ),
        {"retention", "upkeep"},
    ),
    "small files": (small_files, {"stream_cuts", "retention", "upkeep"}),
    "staged rows": (leave_rows, {"upkeep"}),
    "a table of a stream": (
        lambda world: update_stream(
            world.database, world.lane.name, {"publish": "iceberg"}, request_id="update"
        ),
        {"upkeep"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("event", EVENTS)
def test_what_happens_is_found_to_be_work(world: World, event: str) -> None:
    world.settle()
    happens, expected = EVENTS[event]
    happens(world)
    found = world.work()
    assert expected <= found.keys(), found
    if "adjunct" not in found:  # whose builds need Spark
        world.settle()


def test_a_store_has_work_while_it_is_behind_and_when_a_version_expires(world: World) -> None:
    world.settle()
    store = Store.made(world.lane, keep_versions=3600)
    assert "adjunct" in world.work()
    store.build()
    world.settle()
    assert "adjunct" not in world.work()
    world.append()
    assert "adjunct" in world.work("adjunct")
    store.build()
    assert "adjunct" not in world.work("adjunct")
    run(world.database, "UPDATE adjunct_version SET superseded_at = superseded_at - interval '2 h'")
    assert world.work("adjunct") == {"adjunct": ["versions of stores have expired"]}
    world.run("adjunct")
    assert not world.work("adjunct")


def test_a_store_that_kills_its_builders_rests(world: World) -> None:
    world.settle()
    store = Store.made(world.lane)
    for builder in ("first", "second"):
        store.begun(builder)
        store.lapse()
    assert "adjunct" not in world.work()
    store.lapse(300)
    assert "adjunct" in world.work()


def test_a_job_that_failed_or_has_not_run_for_a_day_has_work(world: World) -> None:
    assert world.work().keys() == {*JOBS}, "none of them has run"
    world.settle()
    run(world.database, "UPDATE job_run SET state = 'failed' WHERE job = 'scale'")
    assert world.work().keys() == {"scale"}
    world.run("scale")
    run(world.database, "UPDATE job_run SET started_at = started_at - interval '1 day'")
    assert world.work().keys() == {*JOBS}


def test_a_run_that_looked_at_a_part_is_no_run(world: World) -> None:
    world.settle()
    run(world.database, "DELETE FROM job_run WHERE job = 'retention'")
    of_run = RunId("weir_retention", unique("run"), "retention")
    job = Job("retention", of_run, world.settings, world.database, start_spark=no_spark)
    perform(job, ACTIONS["retention"], {"dry_run": True})
    assert "retention" in world.work()


def test_what_is_not_known_to_the_question_always_has_work(world: World) -> None:
    world.settle()
    assert world.work("audit", "scale").keys() == {"audit"}


def test_nothing_is_due_before_its_time(world: World) -> None:
    patient = patience_of(world.settings) | {"grace_period": 3600.0, "transaction_lease": 3600.0}
    world.settle()
    give_up(world)
    run(world.database, "INSERT INTO garbage (root, path, reason) VALUES ('', 'x', 'aborted')")
    assert not work_of(world.database, JOBS, patient).keys() & {"upkeep"}
    assert "upkeep" in world.work()


def test_the_triggerers_login_may_ask_and_read_nothing(
    world: World, test_database: TestDatabase
) -> None:
    dsn = test_database.dsn.replace("weir_app", "weir_watch")
    assert dsn != test_database.dsn
    watcher = Database(dsn, patience=10.0, connect_patience=10.0)
    try:
        assert work_of(watcher, JOBS, patience_of(world.settings)).keys() == {*JOBS}
    finally:
        watcher.dispose()


STEPS: tuple[Callable[[World], Any], ...] = (
    World.append, World.append, World.read,
    lambda world: world.group.checkpoint(),
    lambda world: world.group.lapse("reader"),
    lambda world: world.lane.scale(world.lane.active()[0]),
    give_up,
    lambda world: world.reader().open(),
    lambda world: Group.made(world.lane, subscriber=False),
    lambda world: run(
        world.database, "UPDATE stream_cut SET recorded_at = recorded_at - interval '1 hour'"
    ),
    lambda world: update_stream(
        world.database, world.lane.name, {"cuts_every": 3600}, request_id=unique("update")
    ),
)  # fmt: skip


@pytest.mark.parametrize("number", range(cases(64)))
def test_whatever_a_job_would_change_is_found_to_be_work(world: World, number: int) -> None:
    random = random_for(f"work {number}")
    world.settle()
    for _ in range(8):
        for step in random.choices(STEPS, k=random.randint(0, 3)):
            step(world)
        job = random.choice(JOBS)
        found, before = world.work(job), world.state()
        world.run(job)
        assert found or world.state() == before, f"{job} had something to do"


def test_a_certificate_of_which_no_file_is_left_is_to_be_signed(
    world: World, test_database: TestDatabase
) -> None:
    world.settle()
    owner = Database(test_database.owner_dsn, patience=10.0, connect_patience=10.0)
    run(
        owner,
        """INSERT INTO erasure_request (request_id, stream_id, stream_name, requested_by, reason,
            asked, searched, remains, done_at)
        VALUES ('x', :s, :name, 'me', 'because', '{}', '[]', '[]', now())""",
        s=world.lane.stream_id, name=str(world.lane.name),
    )  # fmt: skip
    owner.dispose()
    assert world.work() == {"upkeep": ["certificates can be signed"]}
    world.settle()


def test_a_sweep_is_counted_only_after_something_was_written(world: World) -> None:
    world.settle()
    run(world.database, "DELETE FROM retention_queue")
    assert not world.work("retention")
    world.append()
    assert world.work("retention") == {"retention": ["a sweep is to be counted"]}
    world.settle()
    run(world.database, "UPDATE installation SET swept_at = NULL")
    assert "a sweep is to be counted" in world.work("retention")["retention"]
