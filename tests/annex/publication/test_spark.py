"""Spark with Iceberg's runtime reads a published stream, and changes nothing of it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from psycopg2.extensions import parse_dsn

from tests.annex.publication.engines import metadata_of, ordered
from tests.annex.publication.tables import check, expected, published
from tests.chance import random_for
from tests.compaction.world import World
from weir.database.connection import Database
from weir.settings import Settings

SPARK = "4.1.4"  # the newest minor version that Iceberg has a runtime for
MAVEN = "https://repo1.maven.org/maven2/"
JARS = (
    "org/apache/iceberg/iceberg-spark-runtime-4.1_2.13/1.12.0/iceberg-spark-runtime-4.1_2.13-1.12.0.jar",
    "org/postgresql/postgresql/42.7.8/postgresql-42.7.8.jar",
)
REFUSED = (
    "INSERT INTO {table} SELECT * FROM {table}",
    "DELETE FROM {table} WHERE n = 1",
    "ALTER TABLE {table} SET TBLPROPERTIES ('gc.enabled' = 'true')",
    "DROP TABLE {table}",
    "DROP TABLE {table} PURGE",
    "CALL weir.system.expire_snapshots(table => '{name}')",
    "CALL weir.system.remove_orphan_files(table => '{name}')",
    "CALL weir.system.rewrite_data_files(table => '{name}')",
)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The interpreter of an environment with that Spark, and Iceberg's jars."""
    folder = tmp_path_factory.mktemp("iceberg")
    jars = []
    for address in JARS:
        jar = folder / address.rpartition("/")[2]
        try:
            with urlopen(MAVEN + address, timeout=60) as source:  # noqa: S310 - https
                jar.write_bytes(source.read())
        except (URLError, TimeoutError) as error:
            pytest.skip(f"{jar.name} is not to be had: {error}")
        jars.append(str(jar))
    uv, python = Path(sys.executable).parent / "uv", folder / "venv" / "bin" / "python"
    commands: tuple[list[str | Path], ...] = (
        [uv, "venv", "--quiet", "--python", sys.executable, folder / "venv"],
        [uv, "pip", "install", "--quiet", "--python", python, f"pyspark=={SPARK}"],
    )
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"pyspark {SPARK} is not to be had: {done.stderr.strip()[-300:]}")
    return python, jars


@pytest.mark.release
def test_spark_reads_the_same_rows_and_can_change_nothing(
    database: Database, settings: Settings, spark: tuple[Path, list[str]]
) -> None:
    world = World.made(database, settings, random_for("spark"), publish="iceberg")
    for columns in (1, 2, 2):
        world.columns = columns
        world.append()
    world.append()
    cut = world.lane.tail()
    world.append()
    while not any("files_after" in one for one in world.compact()):
        world.append()
    published(world)
    world.truncate(cut)
    table = published(world)
    check(world, table)
    parts: dict[str, Any] = parse_dsn(settings.database)
    scope, name = world.lane.name.scope, world.lane.name.name
    python, jars = spark
    given = {
        "jars": jars, "user": parts["user"], "table": f"`{scope}`.`{name}`",
        "jdbc": f"jdbc:postgresql://{parts['host']}:{parts['port']}/{parts['dbname']}"
                "?currentSchema=weir",
        "metadata": metadata_of(database, str(world.lane.name)),
        "refused": [
            one.format(table=f"weir.`{scope}`.`{name}`", name=f"`{scope}`.`{name}`")
            for one in REFUSED
        ],
    }  # fmt: skip
    environ = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "SPARK_SUBMIT_OPTS")}
    done = subprocess.run(
        [python, Path(__file__).parent / "read_by_spark.py", json.dumps(given)],
        capture_output=True, text=True, check=False, timeout=500,
        env={**environ, "PGPASSFILE": parts.get("passfile", "")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout.strip().splitlines()[-1])
    want = expected(world)
    assert ordered(said["catalog"]) == want
    assert ordered(said["metadata"]) == want
    accepted = [one for one, error in zip(REFUSED, said["refused"], strict=True) if not error]
    assert accepted == []
    check(world, published(world))
