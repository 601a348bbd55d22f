"""The job of retention, as its DAG submits it."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs import checkpoints, retention, upkeep
from tests.crash.jobs import write_config
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.jobs import main
from tests.world.retention import DAY, consume, pass_time, write_files
from tests.world.streams import Lane, rows, run, unique
from weir.annex.recovery.recover import recover
from weir.controller.ownership import read_installation
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.history.job_runs import RunId, read_outcome
from weir.operations.action import Job
from weir.programs.opening import shared
from weir.settings import Settings, load
from weir.warehouse.marker import MARKER


def filled(database: Database, warehouse: Path) -> Lane:
    """A stream with a file in each of two segments, on disk too."""
    lane = Lane.made(database, retention="consumed")
    lane.append({"0.0": 3, "1.0": 4})
    write_files(lane, warehouse)
    return lane


def consumed(database: Database, warehouse: Path) -> Lane:
    """One all of which a subscriber has released."""
    lane = filled(database, warehouse)
    group = Group.made(lane)
    consume(group)
    return lane


def submitted(
    database: Database,
    job: Callable[[Job, Any], Mapping[str, Any]] = retention.run,
    **arguments: Any,
) -> tuple[int, str, Mapping[str, Any], str]:
    """Exit status, state, report and error of a job."""
    name = job.__module__.rpartition(".")[2]
    run_id = RunId(f"weir_{name}", unique("run"), name)
    given = {name: getattr(run_id, name) for name in ("dag_id", "run_id", "task_id")}
    status = main(
        name, job,
        ["--run", json.dumps(given), "--arguments", json.dumps(arguments)],
    )  # fmt: skip
    state, report, error, _ = read_outcome(database, run_id)
    return status, state, report or {}, error


def seen(table: str) -> str:
    """The columns of a table that jobs may read."""
    return "stream_id, keys" if table == "erased_keys" else "*"


def everything(database: Database, warehouse: Path) -> dict[str, Any]:
    """All rows of all tables, but for what is known of jobs, and all files."""
    names = rows(database, "SELECT tablename FROM pg_tables WHERE schemaname = 'weir_internal'")
    found: dict[str, Any] = {
        name: sorted(str(row) for row in rows(database, f"SELECT {seen(name)} FROM {name}"))
        for (name,) in names
        if name != "job_run"
    }
    files = [path for path in warehouse.rglob("*") if path.is_file()]
    return {**found, "files": sorted((str(p), p.stat().st_mtime_ns) for p in files)}


def of(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["stream"]: one for one in report["decisions"]}


def test_a_dry_run_tells_of_every_stream_and_changes_nothing(
    database: Database, warehouse: Path
) -> None:
    read = consumed(database, warehouse)
    kept, truncated = filled(database, warehouse), filled(database, warehouse)
    truncated.truncate("0.0=3, 1.0=0")
    before = everything(database, warehouse)
    status, state, report, _ = submitted(database, dry_run=True)
    assert (status, state, report["deleted"]) == (0, "succeeded", None)
    assert everything(database, warehouse) == before
    rules = {name: (one["rule"], one["cut"]) for name, one in of(report).items()}
    assert rules == {
        str(read.name): ("consumed", {"0.0": 3, "1.0": 4}),
        str(kept.name): ("no_rule", None),
        str(truncated.name): ("no_rule", None),
    }
    # What it said is what is done then.
    _, _, report, _ = submitted(database)
    assert {name: (one["rule"], one["cut"]) for name, one in of(report).items()} == rules
    assert report["deleted"] == {"deleted": 3, "bytes": 100, "kept": 0, "failed": []}
    after = everything(database, warehouse)
    changed = {name for name in before if after[name] != before[name]}
    assert changed >= {"stream", "garbage", "retention_decision", "data_file", "files"}
    # When nothing is due, only who asks is told.
    submitted(database)
    assert submitted(database)[2]["decisions"] == []
    assert of(submitted(database, dry_run=True)[2]).keys() == rules.keys()
    [one] = submitted(database, dry_run=True, streams=[str(kept.name)])[2]["decisions"]
    assert one["stream"] == str(kept.name)


def test_what_somebody_should_look_at_is_in_the_report_and_in_the_log(
    database: Database, warehouse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lane, held = consumed(database, warehouse), filled(database, warehouse)
    from_start = {"start": "0.0=0, 1.0=0"}
    dead = [Group.made(one, time_out=DAY, **from_start) for one in (lane, held)]
    Group.made(held, **from_start)
    for one in (lane, held):
        pass_time(one, DAY + 1)
    status, _, report, _ = submitted(database)
    assert status == 0
    assert len(report["alerts"]) == 2
    assert (
        f"subscriber {dead[1].name} of stream {held.name} has timed out and holds nothing back; "
        "let its readers run, or delete it"
    ) in report["alerts"]
    lost = f"subscriber {dead[0].name} lost 7 unread events of stream {lane.name}"
    assert any(alert.startswith(lost) for alert in report["alerts"])
    assert {name: one["lost"] for name, one in of(report).items()} == {
        str(lane.name): {dead[0].name: 7}, str(held.name): {},
    }  # fmt: skip
    printed = capsys.readouterr().out.splitlines()
    assert [f"weir: {alert}" in printed for alert in report["alerts"]] == [True, True]


def test_a_stream_that_fails_is_named_and_the_others_are_done(
    database: Database, warehouse: Path
) -> None:
    lanes = [consumed(database, warehouse) for _ in range(3)]
    broken = lanes[1]
    run(
        database,
        """UPDATE stream SET head = '{"9.9": 0}' WHERE stream_id = :s""",
        s=broken.stream_id,
    )
    status, state, report, error = submitted(database)
    assert (status, state) == (1, "failed"), "to be tried again"
    said = (
        f"1 of 3 failed; the first failure is: stream {broken.name}: the stream has no segment 9.9"
    )
    assert error.startswith(said)
    assert error.endswith("[some_failed]")
    assert of(report)[str(broken.name)]["error"] in error
    for lane in (lanes[0], lanes[2]):
        assert of(report)[str(lane.name)]["events"] == 7
        assert lane.head() == {"0.0": 3, "1.0": 4}
    assert report["deleted"]["deleted"] == 4
    left = {str(path.relative_to(warehouse)) for path in warehouse.rglob("*.parquet")}
    assert left == {file.path for file in broken.files()}


@pytest.fixture
def abandoned(database: Database, warehouse: Path) -> tuple[Lane, Group]:
    """A stream that one subscriber has read and another one, with a time-out, has not; and a sealed
    stream."""
    lane, other = filled(database, warehouse), filled(database, warehouse)
    fast = Group.made(lane, start="0.0=0, 1.0=0")
    consume(fast)
    Group.made(lane, start="0.0=0, 1.0=0", time_out=DAY)
    lane.opened("in flight", lease=0.0)
    seal_stream(database, other.name, request_id="seal")
    sweep(database, str(warehouse), 0.0)
    return lane, fast


def test_a_file_that_differs_from_what_was_recorded_is_named_and_kept(
    database: Database, warehouse: Path
) -> None:
    lane = Lane.made(database, retention="consumed", segments=1)
    given = replace(load(), transaction_lease=600.0)
    for batch in "ab":
        table = pa.table({"key": [f"{batch} {i}" for i in range(10)]})
        shared(given).append(str(lane.name), table, writer_id="w", batch_id=batch)
    consume(Group.made(lane, start="0.0=0"))
    one, other = (warehouse / file.path for file in lane.files())
    os.truncate(one, 100)
    status, state, report, error = submitted(database)
    assert (status, state) == (1, "failed")
    assert f"{one.relative_to(warehouse)} is kept (it has 100 of " in error
    assert (report["deleted"]["deleted"], report["deleted"]["kept"]) == (1, 1)
    assert (one.exists(), other.exists()) == (True, False)
    assert submitted(database)[:2] == (0, "succeeded")
    assert one.exists()


RESTORED = r"first trigger weir_recover .* \[database_restored\]"


def test_a_restored_database_truncates_and_deletes_nothing_until_it_was_recovered(
    database: Database,
    settings: Settings,
    warehouse: Path,
    abandoned: tuple[Lane, Group],
    restore: Callable[[Database], Database],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    restored = restore(database)
    sweep(database, str(warehouse), 0.0)
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(replace(settings, database=restored._dsn))))
    lane = Lane(restored, abandoned[0].name, abandoned[0].stream_id)
    pass_time(lane, 2 * DAY)  # so old is the backup
    before = everything(restored, warehouse)
    assert of(submitted(restored, dry_run=True)[2])[str(lane.name)]["events"] == 7
    for job in (retention.run, upkeep.run, checkpoints.run):
        status, state, _, error = submitted(restored, job)
        assert (status, state) == (2, "failed")
        assert re.search(RESTORED, error)
    assert everything(restored, warehouse) == before
    recover(restored, str(warehouse), unknown_files="keep", request_id="r")
    # Its readers may have been there all the time; they have a whole time-out to show it.
    status, _, report, _ = submitted(restored)
    assert (status, of(report)[str(lane.name)]["cut"]) == (0, None)
    assert len(lane.files()) == 2
    pass_time(lane, 2 * DAY)
    assert of(submitted(restored)[2])[str(lane.name)]["events"] == 7


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("retention", {}),
        ("upkeep", {}),
        ("truncate_stream", {"stream": "{lane}", "cut": "0.0=3, 1.0=4", "dry_run": False}),
        ("delete_stream", {"stream": "{sealed}"}),
        ("delete_reader_group", {"reader_group": "{group}"}),
        ("reset_reader_group", {"reader_group": "{group}", "to": "tail"}),
        ("reader_offline", {"reader_group": "{group}", "reader": "reader"}),
    ],
)
def test_with_a_wrong_database_nothing_is_destroyed(
    database: Database,
    warehouse: Path,
    abandoned: tuple[Lane, Group],
    name: str,
    given: dict[str, Any],
) -> None:
    lane, group = abandoned
    pass_time(lane, 2 * DAY)
    [[sealed]] = rows(database, "SELECT stream_name FROM stream WHERE state = 'sealed'")
    (warehouse / MARKER).write_text("that of the right database\n1\n")
    before = everything(database, warehouse)
    arguments = {
        key: value.format(lane=lane.name, sealed=sealed, group=group.name)
        if isinstance(value, str)
        else value
        for key, value in given.items()
    }
    job = import_module(f"spark_jobs.{name}").run
    status, state, _, error = submitted(database, job, **arguments)
    assert (status, state) == (2, "failed")
    assert re.fullmatch(
        rf"the warehouse {warehouse} .* that of the right database, .* \[warehouse_not_owned\]",
        error,
    )
    assert everything(database, warehouse) == before
    (warehouse / MARKER).write_text(read_installation(database).installation_id)
    assert submitted(database, job, **arguments)[0] == 0, "with the right one it would have been"
