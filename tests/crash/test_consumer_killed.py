"""A consumer that dies, or freezes, in the middle of a batch: its output is there exactly once."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.committed_folders import committed_folders
from tests.conftest import TestDatabase
from tests.crash.functions import BAD, FOLDER, LATEST, STREAM, TABLE
from tests.crash.jobs import execute, holding, job, wait_for
from tests.spark.installation import Installation, parquet_rows
from tests.world.garbage import sweep
from tests.world.jobs import run_job
from weir.controller.seal import seal_stream
from weir.model.names import stream_name
from weir.reader_groups.outputs.tables import sweep_staging

ROWS = 120
ARGUMENTS = {
    "reader_group": "readers",
    "function": "tests.crash.functions:copies",
    "outputs": [f"stream:{STREAM}", f"parquet:{FOLDER}", f"table:{TABLE}",
                f"table:{LATEST} mode=upsert key=k"],
}  # fmt: skip
PICKY = {
    **ARGUMENTS,
    "function": "tests.crash.functions:picky",
    "outputs": [f"table:{TABLE}"],
    "on_error": "quarantine",
}


@pytest.fixture
def group(weir: Installation, test_database: TestDatabase) -> str:
    """A reader group with something to read, and the stream and the table for its results."""
    execute(
        test_database.owner_dsn,
        f"CREATE TABLE {TABLE} (k text, n bigint);"
        f"CREATE TABLE {LATEST} (k text PRIMARY KEY, n bigint);"
        f"GRANT SELECT, INSERT ON {TABLE} TO weir_jobs, weir_publisher;"
        f"GRANT SELECT, INSERT, UPDATE ON {LATEST} TO weir_jobs, weir_publisher",
    )
    stream = weir.create(segments=3)
    weir.create(STREAM, segments=2)
    weir.append(stream, [(f"key {n % 11}", n) for n in range(ROWS)])
    return weir.group(stream)


def run(
    reader: str, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any] = ARGUMENTS
) -> dict[str, Any]:
    """The job as another task, in this process; returns its report."""
    capsys.readouterr()
    run_id = {"dag_id": "weir", "run_id": reader, "task_id": "process"}
    given = ["--run", json.dumps(run_id), "--arguments", json.dumps(arguments)]
    status = run_job("process", given)
    printed = capsys.readouterr().out
    assert status == 0, printed
    said = next(line for line in printed.splitlines() if line.startswith("weir: process: {"))
    report: dict[str, Any] = json.loads(said.removeprefix("weir: process: "))
    return report


def lapse(reader: str, weir: Installation) -> None:
    """Let the lease of a reader run out, so that it may be replaced."""
    changed = execute(
        weir.settings.database,
        f"""UPDATE reader SET lease_until = pg_postmaster_start_time()
        WHERE reader_id LIKE '%/{reader}/%' RETURNING reader_id""",
    )
    assert len(changed) == 1


def in_the_table(weir: Installation) -> list[int]:
    return [n for (n,) in weir.query(f"SELECT n FROM {TABLE} ORDER BY n")]


def staging_tables(weir: Installation) -> list[str]:
    found = weir.query(
        """SELECT relname FROM pg_class WHERE relnamespace = 'weir_staging'::regnamespace
        AND relkind = 'r' ORDER BY relname"""
    )
    return [row.relname for row in found]


def assert_exactly_once(weir: Installation, group: str) -> None:
    """Each event is once in the stream, in the table and in Parquet, as the record has it."""
    facts = weir.check(stream_name(STREAM))
    assert sorted(facts["n"]) == list(range(ROWS))
    assert in_the_table(weir) == list(range(ROWS))
    latest = dict(map(tuple, weir.query(f"SELECT k, n FROM {LATEST}")))
    assert latest == {f"key {n % 11}": n for n in range(ROWS)}
    root = Path(weir.settings.output_roots[0])
    assert parquet_rows(weir, group, FOLDER) == list(range(ROWS))
    sweep(weir.database, weir.settings.warehouse, 0.0)
    written = {str(p.parent.relative_to(root)) + "/" for p in root.rglob("*.parquet")}
    assert written == {*committed_folders(weir.database, group, FOLDER)}, (
        "what a killed attempt wrote is recorded as garbage"
    )
    sweep_staging(weir.database)
    assert staging_tables(weir) == []
    assert weir.value("SELECT unread_events FROM lag") == 0


@pytest.mark.release
@pytest.mark.parametrize("engines", [("pyarrow", "spark"), ("spark", "pyarrow")])
def test_a_consumer_that_is_killed_is_taken_over_by_one_of_the_other_engine(
    weir: Installation,
    group: str,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    test_database: TestDatabase,
    engines: tuple[str, str],
) -> None:
    first, second = ({**ARGUMENTS, "function": "tests.crash.functions:same", "engine": engine}
                     for engine in engines)  # fmt: skip
    with (
        holding(test_database.owner_dsn, f"LOCK TABLE {TABLE} IN SHARE MODE") as somebody_waits,
        job("process", first, config, run="killed") as killed,
    ):
        wait_for("the batch to be written", somebody_waits)
        killed.kill()
    lapse("killed", weir)
    (batch,) = run("another", capsys, second)["batches"]
    assert (batch["batch"], batch["attempt"], batch["events"]) == (1, 2, ROWS)
    assert_exactly_once(weir, group)


def test_consumer_killed_before_its_commit_is_taken_over_and_each_event_is_there_once(
    weir: Installation,
    group: str,
    config: Path,
    capsys: pytest.CaptureFixture[str],
    test_database: TestDatabase,
) -> None:
    # Its commit can't put the rows into the table.
    with (
        holding(test_database.owner_dsn, f"LOCK TABLE {TABLE} IN SHARE MODE") as somebody_waits,
        job("process", ARGUMENTS, config, run="killed") as killed,
    ):
        wait_for("the batch to be opened", lambda: weir.query("SELECT FROM reader_batch"))
        wait_for("the batch to be written", somebody_waits)
        killed.kill()
    written = Path(weir.settings.output_roots[0]) / FOLDER
    assert list(written.rglob("*.parquet")), "it had written its output"
    assert weir.query("SELECT FROM parquet_outputs") == [], "which nobody reads"
    assert staging_tables(weir) == ["g1_t1_0", "g1_t1_1"], "also to be put into the table"
    lapse("killed", weir)
    (batch,) = run("another", capsys)["batches"]
    assert (batch["batch"], batch["attempt"], batch["events"]) == (1, 2, ROWS)
    assert_exactly_once(weir, group)
    later = run("later", capsys)
    assert (later["batches"], later.get("end")) == ([], None), "there is nothing left to read yet"
    (stream,) = weir.query("SELECT DISTINCT stream FROM lag")[0]
    seal_stream(weir.database, stream_name(stream), request_id="seal")
    assert run("last", capsys)["end"] == (
        f"reader group {group} is at its end: it has read {stream}, and nothing will follow."
    )


@pytest.mark.release
def test_zombie_reader_that_commits_after_its_batch_was_taken_over_is_refused(
    weir: Installation, group: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = weir.settings.state
    waiting = {"WEIR_TEST_WAIT": str(folder)}
    with job("process", ARGUMENTS, config, run="zombie", **waiting) as zombie:
        wait_for("its function to be called", (folder / "here").exists)
        zombie.stop()
        lapse("zombie", weir)
        (batch,) = run("another", capsys)["batches"]
        assert (batch["batch"], batch["attempt"], batch["events"]) == (1, 2, ROWS)
        (folder / "go").touch()
        zombie.go_on()
        assert zombie.wait() in (1, 2)
        said = zombie.said
    assert any(f"[{c}]" in said for c in ("reader_replaced", "batch_taken_over", "attempt_fenced"))
    assert_exactly_once(weir, group)
    ((state, token, attempt),) = weir.query("SELECT state, token, attempt FROM reader_batch")
    assert (state, token, attempt) == ("committed", 2, 2)


@pytest.mark.release
def test_consumer_killed_while_it_isolates_a_failing_event_is_taken_over_in_the_middle(
    weir: Installation, group: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    committed = "SELECT count(*) FROM reader_batch WHERE state = 'committed'"
    splits = "SELECT count(*) FROM reader_batch WHERE state = 'split'"
    with job("process", PICKY, config, run="killed") as killed:
        wait_for("a half to be committed", lambda: weir.value(committed))
        statement = "SELECT FROM reader_group FOR UPDATE"
        with holding(weir.settings.database, statement) as somebody_waits:
            wait_for("the next change", somebody_waits)
            killed.kill()
    seen = weir.value(splits)
    there = len(in_the_table(weir))
    assert 0 < there < ROWS
    lapse("killed", weir)
    report = run("another", capsys, PICKY)
    assert weir.value(splits) > seen > 0
    good = [n for n in range(ROWS) if n != BAD]
    assert (there + report["events"], report["rejected"]) == (ROWS, 1)
    assert in_the_table(weir) == good
    [row] = weir.check(stream_name("s/events.rejected"), key=None)["row"]
    assert json.loads(row)["n"] == BAD
    assert weir.value("SELECT unread_events FROM lag") == 0
    assert weir.value("SELECT count(*) FROM reader_batch WHERE state = 'open'") == 0
