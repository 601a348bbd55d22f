"""Jobs as real processes that tests stop, continue and kill; and locks that hold them in place."""

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2

from tests.conftest import TestDatabase
from weir.local.spark_start import spark_start
from weir.operations.jobs import ACTIONS
from weir.settings import Settings

ROOT = Path(__file__).parents[2]
_runs = itertools.count()


def wait_for(what: str, found: Callable[[], Any], seconds: float = 300.0) -> Any:
    """Ask again and again until the answer is true, and return it."""
    until = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < until, f"waited {seconds:.0f} s in vain for {what}"
        time.sleep(0.02)
    return answer


def write_config(settings: Settings, **more: Any) -> Path:
    """Write a weir.toml that says the same as `settings`, and return its path."""
    values = {
        "state": str(settings.state), "database": settings.database,
        "warehouse": settings.warehouse, "input_roots": list(settings.input_roots),
        "output_roots": list(settings.output_roots), "grace_period": settings.grace_period,
        "transaction_lease": settings.transaction_lease, "reader_lease": settings.reader_lease,
        "function_packages": ["tests"], "function_path": [str(ROOT)], **more,
    }  # fmt: skip
    path = settings.state / "weir.toml"
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in values.items()))
    return path


class Process:
    """A process with all its children (Spark's JVM), by its process group."""

    def __init__(self, command: list[str], config: Path, **environ: str) -> None:
        self._said = config.parent / f"process-{next(_runs)}.log"
        with self._said.open("w") as out:
            self._process = subprocess.Popen(
                command,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=ROOT,
                env={
                    **os.environ,
                    "WEIR_CONFIG": str(config),
                    "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
                    "PYTHONPATH": f"{ROOT}/plugins:{ROOT}",
                    "PYSPARK_PYTHON": sys.executable,
                    **spark_start(os.environ),
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    **environ,
                },
            )

    @property
    def said(self) -> str:
        """Return everything that the process has printed."""
        return self._said.read_text()

    def _signal(self, number: int) -> None:
        os.killpg(self._process.pid, number)

    def stop(self) -> None:
        """Freeze the process, as a machine that hangs."""
        self._signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let the process go on."""
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """Send SIGKILL to the whole group, so that nothing of it can clean up."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def kill_jvm(self) -> None:
        """Send SIGKILL to the JVM alone: Python is its child, and lives on."""
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float = 300.0) -> int:
        """Wait until the process ends, and return its exit status."""
        return self._process.wait(seconds)

    def running(self) -> bool:
        """Return whether the process has not ended yet."""
        return self._process.poll() is None

    def end(self) -> None:
        """End the process, whatever it does."""
        if self.running():
            self.go_on()
            self.kill()
        with contextlib.suppress(ProcessLookupError):  # children of a JVM that was killed alone
            self._signal(signal.SIGKILL)


@contextmanager
def process(command: list[str], config: Path, **environ: str) -> Iterator[Process]:
    """Yield a process that does not outlive the block."""
    started = Process(command, config, **environ)
    try:
        yield started
    except BaseException:
        print(started.said)  # pytest shows it with the failure
        raise
    finally:
        started.end()


def job(
    name: str, arguments: dict[str, Any], config: Path, run: str = "killed", **environ: str
) -> Any:
    """Return a context with a real job in a process, submitted as Airflow does it."""
    run_id = {"dag_id": "weir", "run_id": run, "task_id": name}
    command = ["spark-submit", "--master", "local[2]", ACTIONS[name].file, "--run",
               json.dumps(run_id), "--arguments", json.dumps(arguments)]  # fmt: skip
    return process(command, config, **environ)


@contextmanager
def holding(dsn: str, statement: str) -> Iterator[Callable[[], bool]]:
    """Hold the locks of a statement during the block. Yield a function that says whether somebody
    waits for them."""
    connection = psycopg2.connect(dsn)
    connection.cursor().execute("SET search_path TO weir_internal, weir")
    connection.cursor().execute(statement)
    try:
        yield lambda: blocked_by(dsn, connection.info.backend_pid)
    finally:
        connection.rollback()
        connection.close()


def blocked_by(dsn: str, server: int) -> bool:
    """Return whether somebody waits for a lock of the server process of a session."""
    blocked = f"SELECT pid FROM pg_stat_activity WHERE {server} = ANY(pg_blocking_pids(pid))"
    return bool(execute(dsn, blocked))


def execute(dsn: str, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement by a connection of its own, and return its rows."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    try:
        cursor = connection.cursor()
        cursor.execute("SET search_path TO weir_internal, weir")
        cursor.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []
    finally:
        connection.close()


class HeldCommits:
    """The COMMITs of appends to a database, none of which ends before it is let go."""

    def __init__(self, database: TestDatabase) -> None:
        self._dsn = database.dsn
        self._connection = psycopg2.connect(database.dsn)
        self._connection.cursor().execute("SELECT pg_advisory_lock(1)")

    def waiting(self) -> list[int]:
        """Return the process ids of the servers that are in the middle of one."""
        found = execute(
            self._dsn,
            """SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'advisory'""",
        )
        return [pid for (pid,) in found]

    def let_go(self) -> None:
        """Let all of them end."""
        self._connection.close()


@contextmanager
def held_commits(database: TestDatabase) -> Iterator[HeldCommits]:
    """Hold the COMMIT of each append during the block, or until it is let go."""
    execute(
        database.owner_dsn,
        """CREATE FUNCTION be_held() RETURNS trigger LANGUAGE plpgsql AS
            $$ BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END $$;
        CREATE CONSTRAINT TRIGGER held AFTER UPDATE ON weir_internal.transaction
            DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (new.state = 'committed')
            EXECUTE FUNCTION be_held();
        GRANT EXECUTE ON FUNCTION be_held TO PUBLIC""",
    )
    held = HeldCommits(database)
    try:
        yield held
    finally:
        held.let_go()
        execute(database.owner_dsn, "DROP FUNCTION be_held CASCADE")
