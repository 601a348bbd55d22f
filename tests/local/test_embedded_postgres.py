"""The embedded server: what a crash, a second start or a busy machine may do to it."""

import contextlib
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg2
import pytest

from tests.raises import raises
from weir.local import logins, ports, processes
from weir.local.embedded_postgres import EmbeddedPostgres

pytestmark = pytest.mark.server


@pytest.fixture
def postgres(tmp_path: Path) -> Iterator[EmbeddedPostgres]:
    """A server whose state lies in a folder that nobody else may enter; not started yet."""
    yield from in_closed_folder(tmp_path)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """Such a server that runs, for tests that leave it running."""
    for server in in_closed_folder(tmp_path_factory.mktemp("running")):
        server.start()
        logins.make_owners(server)
        yield server


def in_closed_folder(folder: Path) -> Iterator[EmbeddedPostgres]:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    server = EmbeddedPostgres(closed / "state", durable=False)
    yield server
    server.remove()


def test_data_survive_stop_and_start(running: EmbeddedPostgres) -> None:
    running.start()
    running.psql("CREATE TABLE kept AS SELECT 42 AS n")
    port = running.port
    running.stop()
    running.stop()
    assert not running.running()
    running.start()
    assert (running.psql("SELECT n FROM kept"), running.port) == ("42", port)


def test_a_second_start_finds_the_first(running: EmbeddedPostgres) -> None:
    started = running.psql("SELECT pg_postmaster_start_time()")
    EmbeddedPostgres(running.state.path).start()
    assert running.psql("SELECT pg_postmaster_start_time()") == started


def test_a_killed_server_recovers_on_its_port(running: EmbeddedPostgres) -> None:
    running.start()
    running.psql("CREATE TABLE survives AS SELECT 42 AS n; CHECKPOINT")
    port = running.port
    running.kill()
    assert not running.running()
    assert not processes.working_in(running.home / "data")
    running.start()
    assert (running.psql("SELECT n FROM survives"), running.port) == ("42", port)


def test_a_pid_that_is_another_process_by_now_does_not_stop_the_start(
    running: EmbeddedPostgres,
) -> None:
    running.start()
    pid_file = running.home / "data" / "postmaster.pid"
    lines = pid_file.read_text().split("\n")
    running.kill()
    owner = running.home.stat()
    other = subprocess.Popen(["sleep", "60"], user=owner.st_uid, group=owner.st_gid)
    try:
        pid_file.write_text("\n".join([str(other.pid), *lines[1:]]))
        assert not running.running()
        running.start()
        assert running.psql("SELECT 1") == "1"
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_an_orphaned_backend_does_not_stop_the_start(running: EmbeddedPostgres) -> None:
    running.start()
    connection = psycopg2.connect(running.dsn("postgres", "postgres"))
    backend = psutil.Process(connection.info.backend_pid)
    backend.suspend()  # else it notices that the postmaster is gone, and follows
    psutil.Process(backend.ppid()).kill()
    running.start()
    assert running.psql("SELECT 1") == "1"
    assert backend not in processes.working_in(running.home / "data")
    connection.close()


def test_an_interrupted_initdb_is_done_again(postgres: EmbeddedPostgres) -> None:
    (postgres.home / "data.new" / "base").mkdir(parents=True)
    postgres.state.write("postgres.json", {"home": str(postgres.home)})
    postgres.start()
    assert postgres.psql("SELECT 1") == "1"


def test_two_starts_at_once_make_one_server(postgres: EmbeddedPostgres) -> None:
    code = (
        "import sys; from pathlib import Path;"
        "from weir.local.embedded_postgres import EmbeddedPostgres;"
        "p = EmbeddedPostgres(Path(sys.argv[1]), durable=False); p.start();"
        "print(p.psql('SELECT pg_postmaster_start_time()'))"
    )
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, str(postgres.state.path)]
    starts = [
        subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    said = [start.communicate()[0] for start in starts]
    assert said[0] == said[1] != ""


def test_a_taken_port_is_replaced_and_named(
    postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.start()
    before = postgres.port
    postgres.stop()
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", before))
        other.listen()
        postgres.start()
        logins.make_owners(postgres)
    assert postgres.port != before
    assert f"port {before} is taken" in caplog.text
    assert f"port={postgres.port}\n" in (postgres.state.path / "pg_service.conf").read_text()
    assert postgres.psql("SELECT 1") == "1"


def test_where_every_port_is_taken_the_start_is_refused(
    postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        # As if it had been free when it was chosen, and was taken each time before the server came.
        monkeypatch.setattr(ports, "free_port", lambda wanted=0: taken)
        with raises("database_unavailable free"):
            postgres.start()


def test_a_statement_that_fails_is_quoted(running: EmbeddedPostgres) -> None:
    with raises("setup_failed syntax"):
        running.psql("no statement")


def test_no_folder_above_is_opened_and_what_it_makes_is_for_its_owner_alone(
    postgres: EmbeddedPostgres,
) -> None:
    above = [postgres.state.path.parent, *postgres.state.path.parent.parents, Path("/var/lib")]
    before = {path: stat.S_IMODE(path.stat().st_mode) for path in above}
    postgres.start()
    logins.make_owners(postgres)
    assert {path: stat.S_IMODE(path.stat().st_mode) for path in above} == before
    for name in ("pgpass", "postgres.pgpass", "secrets.json"):
        assert stat.S_IMODE((postgres.state.path / name).stat().st_mode) == 0o600
    for path in (postgres.state.path, postgres.home, postgres.home / "data"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    assert stat.S_IMODE((postgres.home / "server.log").stat().st_mode) == 0o600
    postgres.stop()
    postgres.start()  # and it still reaches its own folder
    assert postgres.psql("SELECT 1") == "1"


def test_it_never_runs_as_root(running: EmbeddedPostgres) -> None:
    found = processes.working_in(running.home / "data")
    assert found
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker of Postgres may end meanwhile
            assert process.uids().effective != 0


def test_it_listens_on_localhost_only_and_asks_for_a_password(running: EmbeddedPostgres) -> None:
    postmaster = (running.home / "data" / "postmaster.pid").read_text().split("\n")[0]
    listening = {
        connection.laddr.ip
        for connection in psutil.Process(int(postmaster)).net_connections()
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}
    rules = (running.home / "data" / "pg_hba.conf").read_text().splitlines()
    methods = {rule.split()[-1] for rule in rules if rule.split() and not rule.startswith("#")}
    assert methods == {"scram-sha-256"}


def test_no_password_is_an_argument_of_a_process_or_in_the_log(postgres: EmbeddedPostgres) -> None:
    seen: set[str] = set()
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            for process in psutil.process_iter():
                try:
                    seen.add(" ".join(process.cmdline()))
                except psutil.Error:
                    continue
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        postgres.start()
        logins.make_owners(postgres)
    finally:
        done.set()
        watcher.join()
    assert any("initdb" in command for command in seen)  # else nothing was watched
    log = (postgres.home / "server.log").read_text()
    secrets = postgres.state.read("secrets.json")
    assert set(secrets) >= {"postgres", "weir_owner", "weir_app", "airflow"}
    for secret in secrets.values():
        assert secret not in log
        assert not [command for command in seen if secret in command]


def test_the_users_own_locale_and_postgres_settings_are_no_matter(
    postgres: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_XX.UTF-8")  # which this machine does not have
    monkeypatch.setenv("PGOPTIONS", "-c nonsense=1")
    monkeypatch.setenv("PGSSLMODE", "require")
    monkeypatch.setenv("PGDATA", "/nowhere")
    postgres.start()
    assert postgres.psql("SHOW server_encoding") == "UTF8"
    assert postgres.psql("SELECT upper('grün')") == "GRÜN"


def test_lost_data_are_not_silently_replaced(postgres: EmbeddedPostgres) -> None:
    postgres.start()
    postgres.remove()
    with raises("not_started gone"):
        postgres.start()


@pytest.mark.skipif(os.geteuid() != 0, reason="otherwise the data go with the state folder")
def test_a_state_folder_deleted_by_hand_leaves_its_data_aside(
    postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    postgres.start()
    for path in postgres.state.path.iterdir():
        path.unlink()
    postgres.start()  # under the same path: another installation
    [aside] = postgres.home.parent.glob(f"{postgres.home.name}-*")
    try:
        assert str(aside) in caplog.text
        assert (aside / "data" / "PG_VERSION").is_file()
        assert not processes.working_in(aside / "data")
        assert postgres.psql("SELECT 1") == "1"
    finally:
        subprocess.run(["rm", "-rf", str(aside)], check=True)
