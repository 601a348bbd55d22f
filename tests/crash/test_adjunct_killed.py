"""A builder of an adjunct store, or a consumer that prepares a batch with one, is killed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.conftest import TestDatabase
from tests.crash.functions import STREAM
from tests.crash.jobs import ROOT, execute, holding, job, wait_for
from tests.spark.adjunct_world import Store, Way, World
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from tests.world.jobs import run_job
from weir.database.connection import Database
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import stream_name
from weir.settings import Settings

pytestmark = pytest.mark.release
BUILDING = "SELECT FROM adjunct_version WHERE state = 'building'"
SLOW = Way(
    AdjunctDefinition(value="tests.crash.functions:slow_values", value_columns="n BIGINT"),
    lambda e: e.k, lambda e: (e.n,),
)  # fmt: skip


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings) -> Installation:
    """An empty installation whose leases are short."""
    short = replace(
        settings, reader_lease=3.0, transaction_lease=3.0,
        function_packages=("tests",), function_path=(str(ROOT),),
    )  # fmt: skip
    return Installation(spark, database, short)


@pytest.fixture
def world(weir: Installation, config: Path) -> World:
    """A stream with some changes, for jobs that may run without the session of the tests."""
    made = World.made(weir)
    made.append([(f"key {n}", n, "u") for n in range(50)])
    return made


def before_the_targets(database: TestDatabase) -> str:
    return "LOCK TABLE adjunct_pin IN EXCLUSIVE MODE"


def before_the_build(database: TestDatabase) -> str:
    return "SELECT FROM adjunct_store FOR NO KEY UPDATE"


def before_the_publication(database: TestDatabase) -> str:
    return "LOCK TABLE adjunct_version_file IN EXCLUSIVE MODE"


def before_the_pin(database: TestDatabase) -> str:
    pins = "SELECT 1 FROM adjunct_pin"
    wait_for("the targets", lambda: execute(database.owner_dsn, pins))
    return f"{pins} FOR UPDATE"


def check_built_once(store: Store) -> None:
    """Somebody builds the version that was begun, and nothing is left of the dead attempt."""
    weir = store.world.weir
    [dead] = weir.query("SELECT store_id, version, attempt, cut FROM adjunct_version")
    version = store.build()
    assert (version.version, version.cut) == (dead.version, dead.cut)
    assert weir.value("SELECT attempt FROM adjunct_version") == dead.attempt + 1
    assert store.found(version) == store.expected()
    sweep(weir.database, weir.settings.warehouse, 0.0)
    folder = Path(weir.settings.warehouse) / f"_weir_adjunct={dead.store_id}"
    written = {str(p.relative_to(weir.settings.warehouse)) for p in folder.rglob("*.parquet")}
    assert written == {file.path for file in version.files}


def test_a_builder_that_is_killed_while_spark_computes_is_followed_by_another(
    world: World,
) -> None:
    store, folder = world.store(SLOW), world.weir.settings.state
    waiting = {"WEIR_TEST_WAIT": str(folder)}
    with job("adjunct", {}, folder / "weir.toml", **waiting) as killed:
        wait_for("its function to be called", (folder / "here").exists)
        assert world.weir.query(BUILDING)
        killed.kill()
    check_built_once(store)


def test_a_builder_that_is_killed_when_it_has_written_all_is_followed_by_another(
    world: World, test_database: TestDatabase
) -> None:
    store = world.store(SLOW)
    step = before_the_publication(test_database)
    with (
        holding(test_database.owner_dsn, step) as somebody_waits,
        job("adjunct", {}, world.weir.settings.state / "weir.toml") as killed,
    ):
        wait_for("the version to be published", somebody_waits)
        killed.kill()
    assert list(Path(world.weir.settings.warehouse).rglob("_weir_adjunct=*/**/*.parquet"))
    check_built_once(store)


@pytest.mark.parametrize(
    "step", [before_the_targets, before_the_build, before_the_publication, before_the_pin]
)
def test_a_consumer_that_is_killed_while_it_prepares_a_batch_is_continued_at_that_step(
    world: World, test_database: TestDatabase, config: Path,
    capsys: pytest.CaptureFixture[str], step: Callable[[TestDatabase], str],
) -> None:  # fmt: skip
    weir, store = world.weir, world.store(SLOW)
    events = weir.create()
    weir.create(STREAM)
    weir.append(events, [(f"key {n}", n) for n in range(20)])
    arguments: dict[str, Any] = {
        "reader_group": weir.group(events), "function": "tests.crash.functions:joined",
        "outputs": [f"stream:{STREAM}"], "adjuncts": [store.name],
    }  # fmt: skip
    with (
        job("process", arguments, config) as killed,
        holding(test_database.owner_dsn, step(test_database)) as somebody_waits,
    ):
        wait_for("the step", somebody_waits)
        killed.kill()
    states = [state for (state,) in weir.query("SELECT state FROM adjunct_pins")]
    assert states == ([] if step is before_the_targets else ["preparing"])
    world.append([(f"key {n}", 1000 + n, "u") for n in range(20)])  # later than the batch
    wait_for(
        "the lease to run out",
        lambda: weir.query("SELECT FROM reader WHERE lease_until < clock_timestamp()"),
    )
    given = ["--run", json.dumps({"dag_id": "weir", "run_id": "another", "task_id": "process"})]
    status = run_job("process", [*given, "--arguments", json.dumps(arguments)])
    assert status == 0, capsys.readouterr().out
    assert sorted(weir.check(stream_name(STREAM))["n"]) == list(range(20))
    assert weir.query("SELECT state, version FROM adjunct_pins") == [("pinned", 1)]
