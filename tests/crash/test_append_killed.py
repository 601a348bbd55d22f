"""An append that is killed, at any point, and tried again: every row is there exactly once."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest

from tests.crash.jobs import holding, job, wait_for
from tests.spark.installation import Installation
from tests.world.garbage import sweep
from tests.world.jobs import run_job
from weir.model.names import StreamName

ROWS = 40_000
ARGUMENTS = {"stream": "s/events", "files": ["rows.csv"], "format": "csv"}
RETRY = ["--run", '{"dag_id": "weir", "run_id": "killed", "task_id": "ingest", "try_number": 2}']


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """A stream, and a file for it."""
    table = pa.table({"k": [f"key {n % 97}" for n in range(ROWS)], "n": range(ROWS)})
    pa.csv.write_csv(table, Path(weir.input) / "rows.csv")
    return weir.create(segments=4)


def retry(capsys: pytest.CaptureFixture[str]) -> str:
    """The same job again, as Airflow's next try; returns what it printed."""
    capsys.readouterr()
    status = run_job("ingest", [*RETRY, "--arguments", json.dumps(ARGUMENTS)])
    printed = capsys.readouterr().out
    assert status == 0, printed
    return printed


def assert_exactly_once(weir: Installation, stream: StreamName, attempt: int) -> None:
    """Each row is in the stream once, in order, and of the attempt that should have won."""
    facts = weir.check(stream)
    assert sorted(facts["n"]) == list(range(ROWS))
    assert (facts.groupby("k")["n"].diff().dropna() > 0).all()
    ((state, found, events),) = weir.query("SELECT state, attempt, events FROM transaction")
    assert (state, found, events) == ("committed", attempt, ROWS)
    # What the others wrote is known to be garbage; nothing else is left once it is deleted.
    sweep(weir.database, weir.settings.warehouse, 0.0)
    listed = {row.path for row in weir.query("SELECT path FROM data_file")}
    warehouse = Path(weir.settings.warehouse)
    assert {str(p.relative_to(warehouse)) for p in warehouse.rglob("*.parquet")} == listed


def opened(weir: Installation) -> Callable[[], bool]:
    """Whether the append has begun."""
    return lambda: bool(weir.query("SELECT FROM transaction"))


def test_append_killed_before_its_commit_leaves_nothing_and_its_retry_appends_all(
    weir: Installation, stream: StreamName, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job("ingest", ARGUMENTS, config) as killed:
        wait_for("the append to begin", opened(weir))
        with holding(weir.settings.database, "SELECT FROM stream FOR UPDATE") as somebody_waits:
            wait_for("the append to have written its files", somebody_waits)
            killed.kill()
    assert weir.frame(stream).collect() == [], "nothing is visible"
    assert list(Path(weir.settings.warehouse).rglob("*.parquet")), "it had written its files"
    assert f"committed {ROWS:,} events" in retry(capsys)
    assert_exactly_once(weir, stream, attempt=2)


@pytest.mark.release
def test_append_killed_after_its_commit_is_not_repeated_by_its_retry(
    weir: Installation, stream: StreamName, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job("ingest", ARGUMENTS, config) as killed:
        wait_for("the append to begin", opened(weir))
        with holding(weir.settings.database, "SELECT FROM job_run FOR UPDATE"):
            wait_for(
                "its commit", lambda: weir.query("SELECT FROM transaction WHERE clock IS NOT NULL")
            )
            killed.kill()
    assert weir.query("SELECT state FROM job_run") == [("running",)], "it could not say so"
    assert "nothing appended" in retry(capsys)
    assert_exactly_once(weir, stream, attempt=1)


@pytest.mark.release
def test_orphan_that_lives_on_beside_the_retry_is_refused_and_doubles_nothing(
    weir: Installation, stream: StreamName, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with job("ingest", ARGUMENTS, config) as orphan:
        wait_for("the append to begin", opened(weir))
        orphan.stop()
        in_transaction = "SELECT FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
        while weir.query(in_transaction + " AND datname = current_database()"):
            orphan.go_on()  # it was stopped between two statements, and holds locks
            orphan.stop()
        assert f"committed {ROWS:,} events" in retry(capsys)
        orphan.go_on()
        assert orphan.wait() in (1, 2)
        assert "may not commit it" in orphan.said
    assert weir.value("SELECT try_number FROM job_run WHERE state = 'succeeded'") == 2
    assert_exactly_once(weir, stream, attempt=2)


@pytest.mark.release
def test_an_append_whose_jvm_dies_is_aborted_and_says_so(
    weir: Installation, stream: StreamName, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = "SELECT error FROM job_run WHERE state = 'failed'"
    with job("ingest", ARGUMENTS, config) as running:
        wait_for("the append to begin", opened(weir))
        running.kill_jvm()
        ((error,),) = wait_for("its last word", lambda: weir.query(failed))
    assert "Spark's JVM has ended" in error
    assert weir.query("SELECT state FROM transaction") == [("aborted",)]
    assert f"committed {ROWS:,} events" in retry(capsys)
