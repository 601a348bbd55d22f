"""Jobs killed at random moments, again and again: nothing is lost, nothing is there twice."""

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.chance import random_for
from tests.conftest import TestDatabase
from tests.crash.functions import FOLDER, STREAM, TABLE
from tests.crash.jobs import execute, job, wait_for
from tests.spark.installation import Installation, parquet_rows
from tests.world.garbage import sweep
from tests.world.jobs import run_job
from weir.model.names import stream_name

ROUNDS = int(os.environ.get("WEIR_SOAK_ROUNDS", "25"))
SHARED_ROUNDS = max(3, ROUNDS // 5)
ROWS = 20_000
KEYS = 97


@pytest.fixture
def chance() -> random.Random:
    """Return random numbers that the run's seed repeats."""
    return random_for("jobs")


def write_input(weir: Installation, number: int) -> str:
    """A file; returns its name."""
    start = number * ROWS
    table = pa.table(
        {"k": [f"key {n % KEYS}" for n in range(ROWS)], "n": range(start, start + ROWS)}
    )
    pa.csv.write_csv(table, Path(weir.input) / f"{number}.csv")
    return f"{number}.csv"


def kill_at_random(
    name: str, arguments: dict[str, Any], config: Path, run: str, chance: random.Random
) -> None:
    """Start a job and kill it, most often while it works; now and then it gets through."""
    with job(name, arguments, config, run=run) as victim:
        wait_for("the job to start", lambda: "weir: " in victim.said or not victim.running())
        until = time.monotonic() + chance.uniform(0, 6)
        while victim.running() and time.monotonic() < until:
            time.sleep(0.01)


def finish(name: str, arguments: dict[str, Any], run: str) -> None:
    """The same job in this process, to its end."""
    run_id = json.dumps({"dag_id": "weir", "run_id": run, "task_id": name, "try_number": 9})
    assert run_job(name, ["--run", run_id, "--arguments", json.dumps(arguments)]) == 0


@pytest.mark.soak
@pytest.mark.timeout(60 * ROUNDS)
def test_appends_killed_at_random_moments_beside_scales_are_there_exactly_once(
    weir: Installation, config: Path, chance: random.Random, test_database: TestDatabase
) -> None:
    stream = weir.create(segments=2)
    for number in range(ROUNDS):
        arguments = {
            "stream": str(stream), "files": [write_input(weir, number)], "format": "csv",
        }  # fmt: skip
        for _ in range(chance.randint(1, 2)):
            kill_at_random("ingest", arguments, config, f"round {number}", chance)
        if chance.random() < 0.3:
            rows = execute(test_database.dsn, "SELECT segment FROM segments WHERE active")
            weir.scale(stream, [chance.choice(rows)[0]], parts=chance.randint(1, 3))
        finish("ingest", arguments, f"round {number}")
    facts = weir.check(stream)
    assert sorted(facts["n"]) == list(range(ROUNDS * ROWS))
    assert (facts.groupby("k")["n"].diff().dropna() > 0).all()
    sweep(weir.database, weir.settings.warehouse, 0.0)
    listed = {row.path for row in weir.query("SELECT path FROM data_file")}
    warehouse = Path(weir.settings.warehouse)
    assert {str(p.relative_to(warehouse)) for p in warehouse.rglob("*.parquet")} == listed


@pytest.fixture
def consumed(weir: Installation, test_database: TestDatabase) -> dict[str, Any]:
    """A stream, a group that reads it, and every kind of output; the arguments of the job."""
    execute(
        test_database.owner_dsn,
        f"CREATE TABLE {TABLE} (k text, n bigint);"
        f"GRANT SELECT, INSERT ON {TABLE} TO weir_jobs, weir_publisher",
    )
    weir.create(STREAM, segments=2)
    return {
        "reader_group": weir.group(weir.create(segments=6)),
        "function": "tests.crash.functions:copies",
        "outputs": [f"stream:{STREAM}", f"parquet:{FOLDER}", f"table:{TABLE}"],
    }


def append_more(weir: Installation, total: int, count: int) -> int:
    """Append so many events; how many there are then."""
    rows = [(f"key {n % 11}", n) for n in range(total, total + count)]
    weir.append(stream_name("s/events"), rows)
    return total + count


def check_exactly_once(weir: Installation, arguments: dict[str, Any], total: int) -> None:
    """Read the rest; then every event is once in every output."""

    def all_is_read() -> bool:
        finish("process", arguments, "last")
        return bool(weir.value("SELECT unread_events FROM lag") == 0)

    wait_for("all to be read by the last", all_is_read)
    assert sorted(weir.check(stream_name(STREAM))["n"]) == list(range(total))
    assert [n for (n,) in weir.query(f"SELECT n FROM {TABLE} ORDER BY n")] == list(range(total))
    assert parquet_rows(weir, arguments["reader_group"], FOLDER) == list(range(total))


@pytest.mark.soak
@pytest.mark.timeout(60 * ROUNDS)
def test_consumers_killed_at_random_moments_publish_each_event_exactly_once(
    weir: Installation, config: Path, chance: random.Random, consumed: dict[str, Any]
) -> None:
    total = 0
    for number in range(ROUNDS):
        total = append_more(weir, total, 200)
        kill_at_random("process", consumed, config, f"reader {number}", chance)
        if chance.random() < 0.3:
            finish("process", consumed, f"another {number}")
    check_exactly_once(weir, consumed, total)


@pytest.mark.soak
@pytest.mark.timeout(180 * SHARED_ROUNDS)
def test_of_two_consumers_at_once_one_is_killed_and_the_other_finishes_the_work(
    weir: Installation, config: Path, chance: random.Random, consumed: dict[str, Any]
) -> None:
    arguments, total = {**consumed, "readers": 2}, 0
    for number in range(SHARED_ROUNDS):
        total = append_more(weir, total, 600)
        with (
            job("process", arguments, config, run=f"one {number}") as victim,
            job("process", arguments, config, run=f"other {number}") as survivor,
        ):
            open_ = "SELECT FROM reader_batch WHERE state = 'open' AND reader_id LIKE :reader"
            wait_for(
                "a batch to be opened",
                lambda: (
                    weir.query(open_, reader=f"%/one {number}/%") or not victim.running()  # noqa: B023
                ),
            )
            time.sleep(chance.uniform(0, 4))
            if victim.running():
                victim.kill()
            assert survivor.wait(180) == 0, survivor.said
        assert weir.value("SELECT unread_events FROM lag") == 0, "the other did not finish it"
    check_exactly_once(weir, consumed, total)
