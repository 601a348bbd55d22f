"""Every job, with a Spark of its own and with one that is there: the same answers."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import TestDatabase, make_database
from tests.crash.jobs import ROOT, execute, write_config
from tests.spark.connect_server import connect_server
from tests.spark.every_job import STORY
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.operations.jobs import ACTIONS
from weir.settings import Settings

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with connect_server(tmp_path_factory.mktemp("server")) as server:
        yield server.address


def files(folder: Path) -> None:
    """Write what the story ingests."""
    folder.mkdir(parents=True, exist_ok=True)
    at = "2026-01-01T0%d:00:00Z"
    for name, first in (("a", 0), ("b", 20)):
        lines = [f"key {n % 5},{n},{at % (n % 9)}" for n in range(first, first + 20)]
        (folder / f"{name}.csv").write_text("\n".join(["k,n,at", *lines]) + "\n")
    lines = [json.dumps({"k": f"key {n % 5}", "n": n, "at": at % 1}) for n in range(40, 50)]
    (folder / "c.json").write_text("\n".join([*lines, '{"k": "key 1", "n": "no number"}']) + "\n")
    table = pa.table({"k": ["key 0", "new"], "n": [100, 101]})
    pq.write_table(table.append_column("at", pa.array([None, None], pa.timestamp("us", "UTC"))),
                   folder / "d.parquet")  # fmt: skip


def played(settings: Settings, spark: str) -> list[dict[str, Any]]:
    files(Path(settings.input_roots[0]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.every_job"], cwd=ROOT, text=True, capture_output=True,
        timeout=240,
        env={**os.environ, "WEIR_CONFIG": str(write_config(settings, spark=spark))},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


VARYING = "disks|seconds|bytes|clock|_at$|until|since|version|file$|path|id$"  # of what is told


def without_chance(told: Any) -> Any:
    """Return what is told without what differs from run to run: names of files, times, ids."""
    if isinstance(told, dict):
        return {
            name: without_chance(value) for name, value in told.items()
            if not re.search(VARYING, name)
        }  # fmt: skip
    if isinstance(told, list):
        return [without_chance(one) for one in told]
    if isinstance(told, str):
        chance = r"/\S+/(?=output/)|[0-9a-f]{8,}|\d+([.,:]\d+)+( [kMG]?B| s)?|\d+ [kMG]?B"
        return re.sub(chance, "…", told)
    return told


def test_the_story_has_every_job() -> None:
    hung_on = {"publish"}  # asks for a catalogue of tables, as its own tests do
    assert {name for name, _ in STORY} | hung_on == set(ACTIONS)


def test_every_job_answers_the_same_with_a_spark_of_its_own_and_with_one_that_is_there(
    settings: Settings,
    test_database: TestDatabase,
    postgres_server: EmbeddedPostgres,
    tmp_path: Path,
    server: str,
) -> None:
    make_database(postgres_server, "every_job")
    warm = replace(
        settings, state=tmp_path / "warm", database=postgres_server.dsn("every_job", "weir_app"),
        warehouse=str(tmp_path / "warm" / "warehouse"),
        input_roots=(str(tmp_path / "warm" / "input"),),
        output_roots=(str(tmp_path / "warm" / "output"),),
    )  # fmt: skip
    warm.state.mkdir()
    for name in (test_database.name, "every_job"):
        execute(
            postgres_server.dsn(name, "weir_owner"),
            "CREATE TABLE public.late (k TEXT, n BIGINT, now_n BIGINT);"
            "GRANT SELECT, INSERT ON public.late TO weir_jobs, weir_publisher",
        )
    pairs = zip(played(settings, ""), played(warm, server), strict=True)
    for one, other in pairs:
        if one.get("job") == "back_test":  # whose report is a table over the time since the start
            one, other = one["sentence"], other["sentence"]
        assert without_chance(one) == without_chance(other)
        assert "failed" not in one or one["job"] == "reader_offline", one
