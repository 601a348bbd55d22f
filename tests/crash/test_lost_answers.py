"""Each action is played over a network that loses one of its COMMITs, or the answer to it: it goes
on by itself, waits for nobody, and leaves and says what it does over a network that loses none."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import psycopg2
import pytest

import weir
from tests.chance import some
from tests.conftest import make_database
from tests.crash.proxy import failing_network
from tests.released import only
from tests.world.adjunct import Store
from tests.world.scaling import by_rate, never, write
from tests.world.streams import Lane
from weir.adjunct.builds import Build, begin_build
from weir.adjunct.publication import publish_build
from weir.adjunct.stores import define_store
from weir.annex.verification.footers import look_here
from weir.annex.verification.prove import prove
from weir.controller.rejected import make_rejected_stream
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.installation.opened import close_shared
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import perform
from weir.programs.store import StreamStore
from weir.reader_groups.groups.readers import join
from weir.retention.capture import capture
from weir.scaling.run import scale_by_load
from weir.settings import Settings

# What ends a transaction: COMMIT, and the statements that are transactions of their own.
ENDS = rb"COMMIT\x00|FROM (commit|begin)_append\("
FATES = ("before", "after")  # of one of them: it is lost, or its answer
AT_MOST = 20.0  # seconds: who waits for itself waits for a lease, which is longer
WHO = "ann"
ORDERS, OVER, STORE = "t/orders", "t/over", "t/latest"
DECLARED = """
streams:
  t/declared: {routing_key: k, segments: 2}
  t/orders: {routing_key: customer, retention: consumed, publish: iceberg, tags: [money]}
reader_groups:
  declared: {streams: [t/declared, t/orders]}
"""


def orders(database: Database) -> Lane:
    return Lane(database, stream_name(ORDERS), 1)


def append_more(store: StreamStore) -> None:
    store.append(ORDERS, [{"customer": who, "n": 9} for who in (WHO, "bob")])


def world(store: StreamStore) -> None:
    """Make a stream of small files that is published, with rejected rows; a subscriber of it with
    an output, a batch and a checkpoint; an adjunct store; a stream that is sealed; and what an
    append has left that was killed."""
    store.create_stream(ORDERS, "customer", segments=2, retention="consumed", publish="iceberg")
    for n in range(3):
        store.append(ORDERS, [{"customer": who, "n": n} for who in (WHO, "bob", "cid")])
    store.publish()
    rejected = make_rejected_stream(store.database, stream_name(ORDERS))
    store.append(str(rejected), [{"row": json.dumps({"customer": WHO}), "source": "a.csv"}])
    store.create_reader_group("readers", [ORDERS])
    with store.reader("readers", batch_events=3) as reader:
        batch = next(iter(reader))
        batch.commit({"parquet:plain": consumed(batch.events)})
    store.checkpoint_reader_group("readers", "first")
    store.create_reader_group("manual", [ORDERS], release="manual")
    with store.reader("manual") as reader:
        for batch in reader:
            batch.commit()
    define(store.database, STORE, "define")
    store.create_stream(OVER, "k")
    store.append(OVER, [{"k": "a"}])
    store.seal_stream(OVER)
    append_more(store)
    orders(store.database).opened("killed", lease=0.0)


def consumed(events: Any) -> Any:
    return events.select(["customer", "n"])


def define(database: Database, name: str, request_id: str) -> Mapping[str, Any]:
    definition = AdjunctDefinition(key="customer", value="n")
    return define_store(
        database, name, stream_name(ORDERS), AdjunctConfiguration(), definition,
        time_out=None, request_id=request_id,
    )  # fmt: skip


def build(job: Job) -> Mapping[str, Any]:
    """Build with files that are invented, as Spark would write them."""
    begun = begin_build(job.database, STORE, builder=job.request_id, lease=60.0)
    if not isinstance(begun, Build):
        return {"built": [], "expired": []}
    invented = Store(job.database, STORE, orders(job.database)).built(begun)
    return {"built": [publish_build(job.database, begun, invented).version], "expired": []}


def append(job: Job) -> Mapping[str, Any]:
    store = StreamStore(job.settings, job.database, str(job.run))
    new = [{"customer": "dan", "n": 1}, {"customer": WHO, "n": 2}]
    return store.append(ORDERS, new, writer_id="w", batch_id=job.request_id).report()


def capture_and_prove(job: Job) -> Mapping[str, Any]:
    return {
        "captured": capture(job.database),
        "proven": prove(job.installation, look_here).report(),
    }


def make_cold(store: StreamStore) -> None:
    """Make a stream of invented events, whose segments are to be merged."""
    lane = Lane.made(store.database, segments=2, name="t/cold")
    by_rate(lane)
    write(lane, {"0.0": 1.0, "1.0": 1.0})


@dataclass(frozen=True)
class Act:
    """How an action is played. `given`: its arguments. `before`: what there must be besides the
    world. `by`: what it calls, if its own run needs Spark."""

    given: Mapping[str, Any] = field(default_factory=dict)
    before: Callable[[StreamStore], object] | None = None
    by: Callable[[Job], Mapping[str, Any]] | None = None


ON_ORDERS, OF_READERS = {"stream": ORDERS}, {"reader_group": "readers"}
FOR_GOOD = {"dry_run": False}
ACTS = {
    "adjunct": Act(by=build),
    "apply": Act({"text": DECLARED}),
    "audit": Act({"everything": True}),
    "back_test": Act({**ON_ORDERS, "target_rate": 5, "read_files": False}),
    "checkpoint_reader_group": Act({**OF_READERS, "name": "second"}),
    "checkpoints": Act(),
    "compact": Act(),
    "create_reader_group": Act({"reader_group": "new", "streams": [ORDERS, OVER]}),
    "create_stream": Act({"stream": "t/new", "routing_key": "k", "segments": 3}),
    "define_adjunct_store": Act(by=lambda job: define(job.database, "t/more", job.request_id)),
    "delete_adjunct_store": Act({"adjunct_store": STORE, **FOR_GOOD}),
    "delete_reader_group": Act({**OF_READERS, **FOR_GOOD}),
    "delete_stream": Act({"stream": OVER, **FOR_GOOD}),
    "erase": Act({**ON_ORDERS, "reason": "asked", "keys": [WHO], **FOR_GOOD}),
    "fork_reader_group": Act({**OF_READERS, "new_reader_group": "fork"}),
    "ingest": Act(by=append),
    "process": Act(
        {**OF_READERS, "function": "lost:f", "outputs": ["parquet:plain"], "engine": "pyarrow"}
    ),
    "publish": Act(),
    "reader_offline": Act(
        {**OF_READERS, "reader": "killed"},
        before=lambda store: join(store.database, "readers", "killed", 60.0),
    ),
    "recover": Act({"unknown_files": "delete"}),
    "release_reader_group": Act({"reader_group": "manual"}),
    "reset_reader_group": Act({**OF_READERS, "to": "start", "allow_repeat": True, **FOR_GOOD}),
    "retention": Act(),
    "scale": Act(before=make_cold, by=lambda job: {"decisions": scale_by_load(
        job.database, never, request_id=job.request_id)}),
    "scale_stream": Act({**ON_ORDERS, "segments": ["0.0"], "parts": 2}),
    "seal_stream": Act(ON_ORDERS),
    "stream_cuts": Act(by=capture_and_prove),
    "truncate_stream": Act({**ON_ORDERS, "cut": "tail", **FOR_GOOD}),
    "update_adjunct_store": Act({"adjunct_store": STORE, "keep_versions": "3 d"}),
    "update_reader_group": Act({**OF_READERS, "on_gap": "skip"}),
    "update_stream": Act({**ON_ORDERS, "rename_columns": ["n -> number"], "allow_named": True}),
    "upkeep": Act(),
    "verify": Act({"engine": "pyarrow"}),
}  # fmt: skip
IN_CI = ("apply", "checkpoints", "publish", "scale_stream")  # of each kind of action one
ELSEWHERE = {"put_back"}  # needs Spark; calls what create_reader_group and process call


def test_each_action_is_played() -> None:
    assert ACTS.keys() | ELSEWHERE == ACTIONS.keys()


@dataclass(frozen=True)
class Played:
    """What an action said, each time that it was asked for, and what is there then."""

    reports: list[Any]
    sentences: list[str]
    state: list[str]


class Stage:
    """An installation that is put back to what it was before each play."""

    def __init__(self, server: EmbeddedPostgres, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.name, self.kept = "lost_answers", "lost_answers_kept"
        for part in ("input", "output", "warehouse"):
            (folder / "now" / part).mkdir(parents=True)
        self.settings = Settings(
            state=folder,
            database=server.dsn(self.name, "weir_app"),
            warehouse=str(folder / "now/warehouse"),
            output_roots=(str(folder / "now/output"),),
            grace_period=0.0,
            transaction_lease=60.0,
            reader_lease=60.0,
        )
        make_database(server, self.name)
        with weir.open(settings=self.settings) as store:
            world(store)
        self._close()
        make_database(server, self.kept, self.name)
        shutil.copytree(folder / "now", folder / "kept")

    def _close(self) -> None:
        close_shared()

    def put_back(self) -> None:
        self._close()
        make_database(self.server, self.name, self.kept)
        shutil.rmtree(self.folder / "now")
        shutil.copytree(self.folder / "kept", self.folder / "now")

    def play(self, name: str, lost: int | None = None, fate: str = "") -> tuple[Played, int]:
        """Play an action, and ask for it again. `lost`: the number of the end of a transaction
        that meets a `fate`. Returns also how many there were."""
        self.put_back()
        if (before := ACTS[name].before) is not None:
            with weir.open(settings=self.settings) as store:
                before(store)
        fates = ["fine"] * (lost or 0) + [fate] * (lost is not None)
        with failing_network(self.settings.database, fates, at=ENDS, once=True) as (dsn, proxy):
            begun = time.monotonic()
            with Database(dsn, patience=AT_MOST, connect_patience=AT_MOST) as database:
                first = self._asked(database, name, 1)
            took = time.monotonic() - begun
        assert took < AT_MOST
        assert len(proxy.cuts) == (lost is not None)
        with Database(self.settings.database, patience=9.0, connect_patience=9.0) as database:
            again = self._asked(database, name, 2)
        reports, sentences = zip(first, again, strict=True)
        return Played(list(reports), list(sentences), self.state()), proxy.seen

    def _asked(self, database: Database, name: str, number: int) -> tuple[Any, str]:
        act, action = ACTS[name], ACTIONS[name]
        if act.by is not None:
            by = act.by
            action = replace(
                action,
                run=lambda job, _: by(job),
                said=lambda *_: "done",
                form=ACTIONS["upkeep"].form,
            )
        job = Job(
            name, RunId("dag", "run", name, try_number=number), self.settings, database,
            log=lambda _line: None, start_spark=no_spark, own={"lost:f": consumed},
        )  # fmt: skip
        report = perform(job, action, dict(act.given))
        return plain(report), job.sentence

    def state(self) -> list[str]:
        """Return all rows of all tables, and all files, without what differs from play to play."""
        found = []
        with psycopg2.connect(self.server.dsn(self.name, "weir_owner")) as connection:
            cursor = connection.cursor()
            cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'weir_internal'")
            for (table,) in cursor.fetchall():
                cursor.execute(f"SELECT to_jsonb(t) - 'incarnation' FROM weir_internal.{table} t")
                found += [
                    f"{table} {json.dumps(plain(row))}"
                    for (row,) in cursor
                    if row.get("reason") not in ("fenced", "aborted")  # of attempts
                ]
        connection.close()
        now = self.folder / "now"
        found += [plain(str(path.relative_to(now))) for path in now.rglob("*") if path.is_file()]
        return sorted(found)


def no_spark() -> NoReturn:
    raise AssertionError("this needs a JVM: play it by what it calls")


# What differs from play to play: times, random ids, numbers that a rollback leaves out or threads
# take as they come, and those of attempts: there is one more if the answer to a beginning is lost.
PLAIN = {
    "time": re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d(:\d\d)?)?"),
    "id": re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}"),
    "large": re.compile(r"\d{13,}"),
    "request": re.compile(r"(create|update)-\d+"),
    "number": re.compile(r"(?<=attempt=|.._task=)\d+"),
}
DIFFERENT = {
    "stream_id", "group_id", "store_id", "file_id", "number", "erasure_number", "attempt",
    "silent_attempts", "final_after",
    "certificate", "hash", "hashes", "salt", "public_key", "private_key", "key_id",
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return a value without what differs from play to play."""
    if isinstance(value, dict):
        return {
            plain(key): None if key in DIFFERENT else plain(one)
            for key, one in sorted(value.items())
        }
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, bool | None):
        return value
    if isinstance(value, float):
        return "float"
    if isinstance(value, int):
        return value if abs(value) < 1 << 40 else "large"
    found = str(value)
    for what, pattern in PLAIN.items():
        found = pattern.sub(what, found)
    return found


@pytest.fixture(scope="module")
def stage(postgres_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Stage:
    return Stage(postgres_server, tmp_path_factory.mktemp("lost"))


@pytest.mark.random
@pytest.mark.parametrize("name", only(*IN_CI, of=ACTS))
def test_an_action_of_which_any_commit_is_lost_is_done_once_and_says_so(
    name: str, stage: Stage
) -> None:
    whole, number = stage.play(name)
    assert number > 1
    moments = [(lost, fate) for lost in range(number) for fate in FATES]
    for lost, fate in some(moments, name, least=1):
        found, _ = stage.play(name, lost, fate)
        where = f"{fate} {lost} of {number}"
        assert (found.reports, found.sentences) == (whole.reports, whole.sentences), where
        now, then = Counter(found.state), Counter(whole.state)
        assert (sorted(now - then), sorted(then - now)) == ([], []), where
