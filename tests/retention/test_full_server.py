"""A disk of Postgres that fills under a job that runs by itself: a sentence, nothing half done, and
the job goes through when there is space."""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.conftest import TestDatabase
from tests.crash.jobs import write_config
from tests.small_disk import fill, mounted, resize
from tests.world.groups import Group
from tests.world.jobs import main
from tests.world.retention import consume
from tests.world.streams import Lane, unique
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.programs.opening import shared
from weir.settings import Settings

# Each job that runs by itself or writes beside events, with the table that it can write no row of.
JOBS: dict[str, tuple[str, Mapping[str, Any]]] = {
    "stream_cuts": ("stream_cut", {}),
    "checkpoints": ("checkpoint", {}),
    "retention": ("retention_decision", {}),
    "upkeep": ("garbage", {}),
    "scale": ("scale_evaluation", {}),
    "apply": ("reader_group", {"text": "reader_groups: {all: {streams: [shop/orders]}}"}),
    "recover": ("garbage", {"unknown_files": "delete"}),
}  # fmt: skip


@pytest.fixture
def small_table(
    postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> Iterator[Callable[[str], Any]]:
    """Yield a function that moves an empty table to a disk without any space while a block runs."""
    name = f"{test_database.name}_small"
    dsn = postgres_server.dsn(test_database.name, "postgres")
    with (
        tempfile.TemporaryDirectory() as above,
        Database(dsn, patience=0.0, connect_patience=0.0) as superuser,
        superuser.engine.connect() as connection,
    ):
        connection.execution_options(isolation_level="AUTOCOMMIT")
        Path(above).chmod(0o755)
        server = Path(connection.exec_driver_sql("SHOW data_directory").scalar_one()).stat()

        @contextmanager
        def moved(table: str) -> Iterator[Path]:
            full = f"weir_internal.{table}"
            with mounted(Path(above, "disk")) as disk:
                os.chown(disk, server.st_uid, server.st_gid)
                connection.exec_driver_sql(f"CREATE TABLESPACE {name} LOCATION '{disk}'")
                try:
                    connection.exec_driver_sql(f"DELETE FROM {full}")
                    connection.exec_driver_sql(f"VACUUM {full}")  # which leaves no page
                    connection.exec_driver_sql(f"ALTER TABLE {full} SET TABLESPACE {name}")
                    fill(disk)
                    yield disk
                finally:
                    resize(disk, "8m")
                    connection.exec_driver_sql(f"ALTER TABLE {full} SET TABLESPACE pg_default")
                    connection.exec_driver_sql(f"DROP TABLESPACE {name}")

        yield moved


@pytest.mark.parametrize(
    "job",
    [job if job == "upkeep" else pytest.param(job, marks=pytest.mark.release) for job in JOBS],
)
def test_a_job_whose_server_has_no_space_says_so_and_goes_through_when_there_is_space(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str], small_table: Callable[[str], Any], job: str,
) -> None:  # fmt: skip
    there = replace(settings, transaction_lease=0.01)
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(there)))
    check_warehouse_ownership(database, settings.warehouse)
    lane = Lane.made(database, name="shop/orders", retention="consumed", scaling="event_rate",
                     target_rate=1, scale_factor=2)  # fmt: skip
    group = Group.made(lane)
    for batch in ("one", "two"):
        rows = pa.table({"key": [f"{batch} {n}" for n in range(20)]})
        shared(settings).append("shop/orders", rows, writer_id="w", batch_id=batch)
    if job == "retention":
        consume(group)
    if job == "checkpoints":
        reader = group.reader()
        while (opened := reader.open(budget=100)) is not None:
            reader.commit(opened)
    if job == "upkeep":
        lane.opened(lease=0.0)  # an append that nobody finishes
    if job == "recover":
        stray = Path(settings.warehouse, str(lane.stream_id), "_weir_tx=900", "stray.parquet")
        stray.parent.mkdir(parents=True)
        stray.write_text("unknown")
    table, arguments = JOBS[job]
    run = import_module(f"spark_jobs.{job}").run

    def submitted() -> tuple[int, str]:
        run_id = {"dag_id": "weir", "run_id": unique("run"), "task_id": job}
        given = ["--run", json.dumps(run_id), "--arguments", json.dumps(arguments)]
        status = main(job, run, given)
        return status, capsys.readouterr().out

    def events() -> int:
        return int(shared(settings).read("shop/orders").num_rows)

    def state() -> Any:
        streams = lane.rows("SELECT head, state, next_transaction_number FROM stream")
        return events(), streams, lane.rows("SELECT state FROM transaction ORDER BY 1")

    before = state()
    with small_table(table) as disk:
        for _ in range(2):
            status, said = submitted()
            assert status == 1, said
            assert "free space on the disk of Postgres" in said
            assert "[database_failed]" in said
            assert state() == before
        resize(disk, "8m")
        status, said = submitted()
        assert status == 0, said
        assert lane.rows(f"SELECT FROM {table} LIMIT 1") or job == "upkeep"
    assert lane.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    assert events() == (0 if job == "retention" else 40)
    status, said = submitted()
    assert status == 0, said
