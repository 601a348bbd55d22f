"""Many files are deleted by executors, and what can't be deleted is told."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.installation import Installation
from tests.watching import count_statements
from tests.world.garbage import sweep
from tests.world.streams import rows, run
from weir.annex.recovery.recover import recover
from weir.database.connection import Database
from weir.spark.base import delete
from weir.spark.base.delete import deleter
from weir.warehouse.file_deletion import Files
from weir.warehouse.marker import MARKER


def dead_files(database: Database, warehouse: Path, count: int) -> list[Path]:
    """Files in folders as an append makes them, and the rows that say that they are dead."""
    paths = [f"1/_weir_tx={i % 7}/_weir_segment={i % 5}/{i}.parquet" for i in range(count)]
    for path in paths:
        (warehouse / path).parent.mkdir(parents=True, exist_ok=True)
        (warehouse / path).write_text("rows")
    run(
        database,
        """INSERT INTO garbage (root, path, reason, bytes, garbage_since)
        SELECT '', p, 'truncated', 4, clock_timestamp() - interval '1 hour'
        FROM unnest(CAST(:paths AS text[])) p""",
        paths=paths,
    )
    return [warehouse / path for path in paths]


def test_many_files_go_in_partitions_with_the_folders_they_leave_empty(
    spark: SparkSession, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def not_here(files: Files) -> dict[int, str]:
        raise AssertionError(f"the driver itself deletes {len(files)} files")

    monkeypatch.setattr(delete, "FEW", 100)
    monkeypatch.setattr(delete, "delete_here", not_here)  # executors import their own
    files = dead_files(database, tmp_path, 700)
    sent = count_statements(database)
    report = sweep(database, str(tmp_path), 0.0, deleter(lambda: spark), output_roots=())
    assert (report["deleted"], report["bytes"], report["failed"]) == (700, 2800, [])
    assert len(sent) <= 7, "as many for any number of files"
    assert not [file for file in files if file.exists()]
    assert [path.name for path in (tmp_path / "1").iterdir()] == []


def test_what_can_not_be_deleted_is_named_and_left_for_the_next_time(
    spark: SparkSession, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete, "FEW", 10)
    files = dead_files(database, tmp_path, 30)
    files[3].unlink()
    files[3].mkdir()  # a folder where a file should be
    report = sweep(database, str(tmp_path), 0.0, deleter(lambda: spark))
    assert report["deleted"] == 29
    [said] = report["failed"]
    assert str(files[3]) in said
    assert "can't be deleted" in said
    [[left]] = rows(database, "SELECT path FROM garbage")
    assert str(files[3]).endswith(left)
    files[3].rmdir()
    assert sweep(database, str(tmp_path), 0.0, deleter(lambda: spark))["deleted"] == 1


def test_few_files_need_no_session(database: Database, tmp_path: Path) -> None:
    def none() -> SparkSession:
        raise AssertionError("a session was made")

    dead_files(database, tmp_path, 20)
    assert sweep(database, str(tmp_path), 0.0, deleter(none))["deleted"] == 20


def test_nothing_is_left_of_what_spark_wrote_and_none_of_it_is_unknown(weir: Installation) -> None:
    stream = weir.create()
    weir.append(stream, [(f"key {i}", i) for i in range(20)])
    warehouse = weir.settings.warehouse
    assert recover(weir.database, warehouse, request_id="look")["unknown"] == []
    tail = weir.value("SELECT tail FROM streams WHERE stream = :s", s=str(stream))
    weir.truncate(stream, json.dumps(tail))
    assert sweep(weir.database, warehouse, 0.0)["failed"] == []
    assert list(Path(warehouse).rglob("_weir_*")) == [Path(warehouse, MARKER)]
