"""The Spark of a state folder: who reaches it, what becomes of it and of who used it."""

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.connect.session import SparkSession as Connected

import weir
from tests.crash.jobs import wait_for
from tests.raises import raises
from weir.errors import Unavailable
from weir.local.airflow_environment import weir_environment
from weir.local.installation import Installation
from weir.local.processes import alive
from weir.local.spark_address import GIVEN_BY, spark_environment
from weir.local.spark_server import SparkServer
from weir.local.state_folder import StateFolder
from weir.settings import Settings
from weir.spark.base import progress
from weir.spark.base.connect import channel_to, cloned, connected, end, end_all
from weir.spark.base.progress import watched
from weir.spark.base.python_workers import SAME_CODE, fingerprint

pytestmark = [pytest.mark.jvm, pytest.mark.server]
# As minutes are for people.
SOON = (
    "-Dspark.connect.execute.reattachable.senderMaxStreamDuration=1s "  # a sign of life
    "-Dspark.connect.execute.manager.detachedTimeout=2s "
    "-Dspark.connect.execute.manager.maintenanceInterval=1s"
)
KILLED = """
import sys, time
from pyspark.sql.connect.session import SparkSession
at = sys.argv[1]
def endless(batches):
    open(at, "w").write(str(__import__("os").getpid()))
    time.sleep(1000)
    yield from batches
spark = SparkSession.builder.remote(sys.argv[2]).create()
spark.range(0, 1, 1, 1).mapInArrow(endless, "id long").collect()
"""


class Served:
    """A server that runs, and how a program finds it."""

    def __init__(self, state: StateFolder) -> None:
        self.state = state
        self.server = SparkServer(state)
        self.server.want(True)
        self.environ = weir_environment(state)

    def start(self, idle: float = 0.0) -> None:
        opts = f"{SOON} {self.environ['SPARK_SUBMIT_OPTS']}"
        self.server.start({**os.environ, **self.environ, "SPARK_SUBMIT_OPTS": opts}, idle)

    @property
    def jvm(self) -> psutil.Process:
        main = psutil.Process(self.server.running())
        [found] = [one for one in main.children() if one.name() == "java"]
        return found

    @contextmanager
    def session(self) -> Iterator[Any]:
        spark = connected(self.environ["WEIR_SPARK"], {})
        try:
            yield spark
        finally:
            end(spark)


LEFT = """
import sys
from weir.spark.base.connect import connected
from weir.spark.base.session import private_session
spark = connected(sys.argv[1], {})
private_session(spark).range(3).collect()
print("read", flush=True)
sys.stdin.read()
"""
INTERRUPTED = """
import signal, sys
from weir.spark.base.connect import connected, end
signal.signal(signal.SIGALRM, signal.default_int_handler)
for seconds in sys.argv[2:]:
    spark = connected(sys.argv[1], {})
    # Again each second, as Python ignores what is raised while it removes an object.
    signal.setitimer(signal.ITIMER_REAL, float(seconds), 1.0)
    try:
        spark.sql("SELECT count(*) FROM range(100000000000000) WHERE sin(id) = 2").collect()
    except KeyboardInterrupt:
        signal.setitimer(signal.ITIMER_REAL, 0)
    end(spark)
"""


@pytest.fixture(autouse=True, scope="module")
def nothing_left() -> Iterator[None]:
    """Leave no session to the tests that follow in this process, and none of its variables."""
    before = dict(os.environ)
    yield
    end_all()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("WEIR_SPARK", GIVEN_BY, "WEIR_CONFIG", "PYSPARK_GATEWAY_PORT"):
            patch.delenv(name, raising=False)
        one = Served(StateFolder(tmp_path_factory.mktemp("served") / "state"))
        one.start()
        yield one
        one.server.stop()


@pytest.fixture(autouse=True)
def _known(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GIVEN_BY, served.environ[GIVEN_BY])


def test_who_has_the_token_is_answered_and_nobody_else(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served.session() as spark:
        assert spark.range(3).count() == 3
    for given in ("another", None):
        monkeypatch.delenv(GIVEN_BY) if given is None else monkeypatch.setenv(GIVEN_BY, given)
        with pytest.raises(PySparkException, match="UNAUTHENTICATED"), served.session() as spark:
            spark.range(1).collect()


def test_it_listens_on_this_machine_only_and_its_token_is_in_one_closed_file(
    served: Served,
) -> None:
    ours = [psutil.Process(served.server.running()), served.jvm]
    listens = {
        one.laddr.ip.removeprefix("::ffff:")
        for process in ours
        for one in process.net_connections()
        if one.status == psutil.CONN_LISTEN
    }
    assert listens == {"127.0.0.1"}
    token = served.environ[GIVEN_BY]
    assert not any(token in part for process in ours for part in process.cmdline())
    held = [path for path in served.state.path.rglob("*") if path.is_file()]
    held = [path for path in held if token.encode() in path.read_bytes()]
    assert [path.name for path in held] == ["secrets.json"]
    assert stat.S_IMODE(held[0].stat().st_mode) == 0o600
    log = served.state.log_file("spark")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_session_has_the_settings_of_jobs_and_the_code_of_weir(served: Served) -> None:
    def look(batches: Any) -> Any:
        import sys

        import pyarrow as pa
        import pyspark

        import weir

        for _ in batches:
            files = [one.__file__ for one in (weir, pyspark)]
            yield pa.RecordBatch.from_pydict({"t": [sys.executable, *files]})

    with served.session() as spark:
        assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
        assert spark.conf.get("spark.scheduler.mode") == "FAIR"
        assert spark.conf.get(SAME_CODE) == fingerprint()
        found = {one.t for one in spark.range(1).mapInArrow(look, "t string").collect()}
    assert found == {sys.executable, weir.__file__, pyspark.__file__}, "not those of an archive"


def test_progress_says_how_many_rows_the_query_of_a_session_has_read(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go, said, others = tmp_path / "go", list[str](), list[str]()

    def waits(batches: Any) -> Any:
        import time

        for batch in batches:
            yield batch
            while batch["id"][0].as_py() and not go.exists():
                time.sleep(0.1)

    def reads(rows: int, say: Any) -> None:
        with served.session() as spark, watched(spark, "reading", say):
            frame = spark.range(0, rows, 1, 2).mapInArrow(waits, "id long")
            assert frame.count() == rows

    monkeypatch.setattr(progress, "EVERY", 0.5)
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(reads, 1_000, said.append), pool.submit(reads, 80, others.append)]
        # Those of its first task; that of the other session has 40.
        wait_for("rows", lambda: "500 rows read" in "".join(said))
        wait_for("rows", lambda: " 40 rows read" in "".join(others))
        go.touch()
        for one in running:
            one.result(60)
    assert not any("540 rows" in one for one in said)


def test_a_function_that_takes_too_much_memory_fails_alone(served: Served) -> None:
    def takes(batches: Any) -> Any:
        bytearray(5 * 2**30)
        yield from batches

    with served.session() as spark:
        with pytest.raises(PySparkException, match="MemoryError"):
            spark.range(1).mapInArrow(takes, "id long").collect()
        assert spark.range(3).count() == 3


def test_what_a_program_ran_that_was_killed_ends(served: Served, tmp_path: Path) -> None:
    (tmp_path / "killed.py").write_text(KILLED)
    at = tmp_path / "worker"
    client = subprocess.Popen(
        [sys.executable, tmp_path / "killed.py", at, served.environ["WEIR_SPARK"]],
        env={**os.environ, **served.environ},
    )
    wait_for("the task", lambda: at.exists() and at.read_text())
    worker = psutil.Process(int(at.read_text()))
    client.kill()
    client.wait()
    wait_for("the end of the task", lambda: not psutil.pid_exists(worker.pid))


def test_a_session_that_a_program_ends_is_over_at_the_server(served: Served) -> None:
    with served.session() as spark:
        copies = [spark, cloned(spark, {}), cloned(spark, {"spark.sql.shuffle.partitions": "3"})]
        assert [one.range(3).count() for one in copies] == [3, 3, 3]
    for one in copies:
        channel = channel_to(f"{served.environ['WEIR_SPARK']}/;session_id={one.client._session_id}")
        with pytest.raises(PySparkException, match="SESSION_CLOSED"):
            Connected(connection=channel).range(3).collect()


def test_nothing_runs_on_that_was_interrupted_before_it_had_begun(served: Served) -> None:
    wait_for("the end of what ran before", lambda: served.jvm.cpu_percent(1.0) < 20)
    times = [str(0.03 * i) for i in range(1, 9)]
    subprocess.run(
        [sys.executable, "-c", INTERRUPTED, served.environ["WEIR_SPARK"], *times],
        env={**os.environ, **served.environ}, check=True, timeout=120,
    )  # fmt: skip
    wait_for("nothing to run", lambda: served.jvm.cpu_percent(1.0) < 20, 60)


def test_a_server_that_is_killed_is_there_again(served: Served) -> None:
    served.server.stop()
    served.start(idle=600)  # then its process asks the JVM, which dies over that
    wait_for("an answer", lambda: _answers(served))
    before, process = served.jvm, served.server.running()
    before.suspend()
    time.sleep(6)  # a second longer than it looks away
    before.kill()
    wait_for("another JVM", lambda: served.server.running() and _answers(served))
    assert served.server.running() == process
    assert served.jvm != before


def _answers(served: Served) -> bool:
    try:
        with served.session() as spark:
            return bool(spark.range(3).count() == 3)
    except (PySparkException, Unavailable):
        return False


def test_stopping_it_leaves_no_process_and_a_job_of_a_terminal_starts_it_at_its_port(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, jvm = served.server.port, served.jvm
    left = subprocess.Popen(
        [sys.executable, "-c", LEFT, served.environ["WEIR_SPARK"]],
        env={**os.environ, **served.environ}, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert left.stdout is not None
    assert left.stdout.readline() == b"read\n"
    served.server.stop()
    assert served.server.running() is None
    assert not alive(jvm)
    left.communicate(timeout=30)  # a program with sessions of it ends, and does not ask for them
    here, known = Installation(served.state.path), Settings(spark=served.server.address)
    assert here.spark_for(Settings()).spark == "", "it asks for none"
    assert served.server.running() is None
    monkeypatch.setattr("weir.local.installation.IDLE", 1.0)
    assert here.spark_for(known) == known
    assert served.server.port == port
    wait_for("its own end", lambda: served.server.running() is None)
    with raises("spark_unavailable localhost"):
        connected(served.environ["WEIR_SPARK"], {})
    served.start()


def test_one_that_can_not_start_says_why(served: Served, tmp_path: Path) -> None:
    other = Served(StateFolder(tmp_path / "state"))
    other.environ["JAVA_HOME"] = str(tmp_path)
    with raises("spark_unavailable spark.log JAVA_GATEWAY_EXITED"):
        other.start()
    assert other.server.running() is None


def test_jobs_find_the_server_that_the_settings_name_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFolder(tmp_path / "state")
    monkeypatch.delenv(GIVEN_BY)
    assert spark_environment(state, Settings()) == {}, "nobody wants one"
    SparkServer(state).want(True)
    ours = spark_environment(state, Settings())
    assert ours["WEIR_SPARK"].startswith("sc://localhost:")
    assert spark_environment(state, Settings(spark="sc://elsewhere")) == {}
    monkeypatch.setenv(GIVEN_BY, ours[GIVEN_BY])  # as in a process of this installation
    assert spark_environment(state, Settings(spark=ours["WEIR_SPARK"])) == ours
    SparkServer(state).want(False)
    assert spark_environment(state, Settings()) == {}
