"""An object store that answers 503, late, half, or not at all, and programs that are killed there:
nothing is lost, doubled, or left behind."""

import os
import signal
import subprocess
import sys
from dataclasses import replace

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.warehouse.object_store import ObjectStore
from tests.world.garbage import sweep
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.errors import Unavailable
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings

NAME = "shop/orders"
FAULTS = ("503", "cut", "lost", "slow")
MARKER = "weir/_weir_installation"
_APPEND = """
import pyarrow as pa, sys, weir
rows = pa.table({"k": [f"k{n}" for n in range(10)], "n": range(10)})
with weir.open() as store:
    store.append("shop/orders", rows, writer_id="me", batch_id=sys.argv[1])
"""


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    create_stream(database, stream_name(NAME), routing_key="k", segments=3, request_id="create")
    return replace(settings, warehouse="s3a://lake/weir")


def rows_of(batch: int) -> pa.Table:
    return pa.table({"k": [f"k{n}" for n in range(10)], "n": range(10 * batch, 10 * batch + 10)})


def until_it_works(what: object, *args: object, **kwargs: object) -> object:
    """What a scheduler does: try again after an error of which Weir says that this helps."""
    for _ in range(50):
        try:
            return what(*args, **kwargs)  # type: ignore[operator]
        except Unavailable:
            continue
    raise AssertionError("fifty tries failed")


def swept_clean(database: Database, here: Settings) -> None:
    truncate_before(database, stream_name(NAME), "tail", dry_run=False, request_id="truncate")
    for _ in range(50):
        if not until_it_works(sweep, database, here.warehouse, 0.0)["failed"]:  # type: ignore[index]
            return
    raise AssertionError("fifty sweeps failed")


@pytest.mark.random
def test_nothing_is_lost_doubled_or_left_when_every_third_request_fails(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    chance = random_for("object store")
    lake.fault = lambda _: chance.choice(FAULTS) if chance.random() < 0.3 else ""
    batches = cases(24, least=2)
    for batch in range(batches):
        until_it_works(
            shared(here).append, NAME, rows_of(batch), writer_id="me", batch_id=str(batch)
        )
    found = until_it_works(shared(here).read, NAME)
    assert sorted(found["n"].to_pylist()) == list(range(10 * batches))  # type: ignore[index]
    swept_clean(database, here)
    assert lake.objects.keys() == {MARKER}


@pytest.mark.release
def test_a_store_that_does_not_answer_is_told_in_a_sentence_and_may_be_asked_again(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    shared(here).append(NAME, rows_of(0), writer_id="me", batch_id="0")
    for faulty, code in {
        "GET weir/_weir_installation": "warehouse_unreadable", "GET list": "warehouse_unreadable",
        "PUT": "warehouse_not_writable",
    }.items():  # fmt: skip
        lake.fault = lambda asked, faulty=faulty: "503" if asked.startswith(faulty) else ""  # type: ignore[misc]
        with raises(f"{code} s3a://lake/weir") as error:
            shared(here).append(NAME, rows_of(1), writer_id="me", batch_id="1")
        assert isinstance(error.value, Unavailable)
    lake.fault = lambda asked: "503" if ".parquet" in asked else ""
    with raises("warehouse_unreadable s3a://lake/weir"):
        shared(here).read(NAME)
    truncate_before(database, stream_name(NAME), "tail", dry_run=False, request_id="truncate")
    lake.fault = lambda asked: "503" if asked == "POST delete" else ""
    failed = sweep(database, here.warehouse, 0.0)["failed"]
    assert failed
    assert all("can't be deleted: " in said and "SlowDown" in said for said in failed)


@pytest.mark.release
@pytest.mark.parametrize("done", [False, True])
def test_an_append_that_is_killed_at_any_request_is_repeated_once_and_leaves_nothing(
    database: Database, here: Settings, lake: ObjectStore, done: bool
) -> None:
    environment = os.environ | lake.environment | {
        "PYTHONPATH": os.pathsep.join(sys.path), "WEIR_DATABASE": here.database,
        "WEIR_WAREHOUSE": here.warehouse,
    }  # fmt: skip
    shared(here).append(NAME, rows_of(0), writer_id="me", batch_id="first")
    killed = 0
    for moment in range(20):
        left, running = [moment], list[subprocess.Popen[bytes]]()

        def fault(
            _: str, left: list[int] = left, running: list[subprocess.Popen[bytes]] = running
        ) -> str:
            left[0] -= 1
            if left[0] != -1:
                return ""
            os.kill(running[0].pid, signal.SIGKILL)
            return "lost" if done else "503"

        lake.fault = fault
        command = [sys.executable, "-c", _APPEND, str(moment)]
        running.append(subprocess.Popen(command, env=environment))
        killed += running[0].wait(60) != 0
        lake.fault = lambda _: ""
        for _ in range(2):
            shared(here).append(NAME, rows_of(0), writer_id="me", batch_id=str(moment))
        assert shared(here).read(NAME).num_rows == 10 * (moment + 2)
        if left[0] >= 0:
            break
    assert killed == moment
    assert killed > 5
    swept_clean(database, here)
    assert lake.objects.keys() == {MARKER}
