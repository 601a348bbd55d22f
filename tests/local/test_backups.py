"""An installation is backed up while others write, and restored elsewhere."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from tests.conftest import TestDatabase
from tests.crash.jobs import wait_for
from tests.raises import raises
from tests.world.garbage import sweep
from tests.world.streams import rows
from weir.annex.recovery.recover import recover
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.installation.opened import close_shared
from weir.local import binaries, postgres_programs
from weir.local.backup import FILES, MANIFEST, Manifest, back_up, read_list, read_manifest
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.postgres_programs import Programs, programs_for
from weir.local.restore import Restored, restore
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

REPOSITORY = Path(__file__).parents[2]


def program(folder: Path, version: str) -> Path:
    """Make programs that say that they have a version, and do nothing."""
    folder.mkdir(parents=True)
    for name in ("pg_dump", "pg_restore"):
        (folder / name).write_text(f"#!/bin/sh\necho '{name} (PostgreSQL) {version}'\n")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def fakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Put programs of other versions first on PATH."""
    folder = program(tmp_path / "old", "15.17 (Debian 15.17-0)")
    other = program(tmp_path / "strange", "whatever")
    monkeypatch.setenv("PATH", f"{folder}:{other}:{os.environ['PATH']}")
    return folder


@pytest.fixture
def target(postgres_server: EmbeddedPostgres, test_database: TestDatabase) -> Iterator[str]:
    """Yield the name of a database without anything."""
    name = f"{test_database.name}_restored"
    postgres_server.psql(f"CREATE DATABASE {name} OWNER weir_owner")
    yield name
    postgres_server.psql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextmanager
def writing(settings: Settings, stream: str, committed: list[int]) -> Iterator[None]:
    """Append until the end of the block, and note what was committed."""
    ended = threading.Event()

    def write() -> None:
        while not ended.is_set():
            number = len(committed)
            append(settings, stream, number)
            committed.append(number)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def append(settings: Settings, stream: str, number: int) -> None:
    table = pa.table({"key": [f"k{number}"], "n": [number]})
    shared(settings).append(stream, table, writer_id="w", batch_id=str(number))


def admin(server: EmbeddedPostgres, name: str) -> str:
    return server.dsn(name, "postgres")


def backed_up(settings: Settings, dsn: str, folder: Path, *, copied: bool = True) -> Manifest:
    with Database(dsn, patience=60.0, connect_patience=60.0) as database:
        return back_up(database, dsn, settings.warehouse, folder, copied=copied, say=print)


def restored(
    server: EmbeddedPostgres, folder: Path, name: str, warehouse: Path, by: str = "postgres"
) -> Restored:
    manifest, owner = read_manifest(folder), server.dsn(name, "weir_owner")
    return restore(folder, manifest, owner, server.dsn(name, by), str(warehouse), say=print)


def read(settings: Settings, stream: str) -> list[int]:
    found: list[int] = shared(settings).read(stream).to_pydict()["n"]
    return sorted(found)


@pytest.fixture
def lane(database: Database, settings: Settings) -> str:
    """Make a stream."""
    check_warehouse_ownership(database, settings.warehouse)
    shared(settings).create_stream("shop/orders", "key")
    return "shop/orders"


def test_what_was_committed_before_a_backup_is_there_after_a_kill_and_with_writers(
    lane: str, settings: Settings, tmp_path: Path, fakes: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    committed = list[int]()
    for number in range(30):
        append(settings, lane, number)
        committed.append(number)
    owner, folder = admin(postgres_server, test_database.name), tmp_path / "backup"
    environ = os.environ | {
        "PYTHONPATH": str(REPOSITORY / "plugins"), "WEIR_DATABASE": settings.database,
        "WEIR_DATABASE_OWNER": owner, "WEIR_STATE": str(settings.state),
        "WEIR_WAREHOUSE": settings.warehouse,
    }  # fmt: skip
    command = [sys.executable, "-m", "weir.terminal", "backup", str(folder)]
    with writing(settings, lane, committed):
        process = subprocess.Popen(command, env=environ, cwd=tmp_path)
        wait_for("a copy", lambda: any((folder / FILES).rglob("*.parquet")))
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (folder / MANIFEST).exists()
        with raises("argument_invalid finished"):
            read_manifest(folder)
        before = len(committed)
        done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert "PostgreSQL 18" in done.stderr
    elsewhere = tmp_path / "elsewhere"
    whole = restored(postgres_server, folder, target, elsewhere)
    assert (whole.lacks, whole.damaged) == ([], [])
    capsys.readouterr()
    again = restored(postgres_server, folder, target, elsewhere)  # as after a kill at its end
    assert again == whole
    assert "from this backup before" in capsys.readouterr().out
    there = replace(
        settings, database=postgres_server.dsn(target, "weir_app"), warehouse=str(elsewhere)
    )
    with Database(there.database, patience=60.0, connect_patience=60.0) as opened:
        with raises("database_restored weir recover"):
            check_warehouse_ownership(opened, str(elsewhere))
        report = recover(opened, str(elsewhere), unknown_files="keep", request_id="r")
        assert (report["missing_files"], report["unknown_files"]) == (0, 0)
        assert (report["restored"], report["moved"]) == (True, True)
    found = read(there, lane)
    assert found == list(range(len(found)))
    assert before <= len(found) <= len(committed)
    append(there, lane, len(committed))
    with raises("argument_invalid streams"):
        restored(postgres_server, folder, target, elsewhere)
    close_shared()


def test_a_sweep_between_the_dump_and_the_copies_lets_the_dump_be_made_anew(
    lane: str, database: Database, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for number in range(3):
        append(settings, lane, number)
    whole, swept = postgres_programs.Programs.run, list[str]()

    def run(self: postgres_programs.Programs, name: str, *arguments: str) -> None:
        if name == "pg_dump" and not swept:
            append(settings, lane, 3)  # which the first dump lacks
        whole(self, name, *arguments)
        if name == "pg_dump" and not swept:
            swept.append(name)
            append(settings, lane, 4)
            truncate_before(database, stream_name(lane), "tail", dry_run=False, request_id="t")
            assert sweep(database, settings.warehouse, 0.0)["deleted"] == 5

    monkeypatch.setattr(postgres_programs.Programs, "run", run)
    dsn = admin(postgres_server, test_database.name)
    # Left where it is, no file is a copy of what was swept.
    done = backed_up(settings, dsn, tmp_path / "backup", copied=False)
    assert (done.files, done.lacks) == (0, [])
    append(settings, lane, 5)
    done = backed_up(settings, dsn, tmp_path / "next")
    assert (done.files, done.lacks) == (1, [])
    [kept] = (tmp_path / "next" / FILES).rglob("*.parquet")
    os.unlink(Path(settings.warehouse) / kept.relative_to(tmp_path / "next" / FILES))
    lacks = backed_up(settings, dsn, tmp_path / "lost", copied=False)
    assert (lacks.files, len(lacks.lacks)) == (0, 1)
    close_shared()


def test_what_a_backup_lacks_or_has_damaged_is_said_and_not_restored(
    lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    for number in range(3):
        append(settings, lane, number)
    folder, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    backed_up(settings, admin(postgres_server, test_database.name), folder)
    with raises("argument_invalid already"):
        backed_up(settings, admin(postgres_server, test_database.name), folder)
    first, second, _ = sorted((folder / FILES).rglob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-1] + b"?")
    second.unlink()
    done = restored(postgres_server, folder, target, elsewhere, by="weir_owner")
    wanted = [str(one.relative_to(folder / FILES)) for one in (first, second)]
    assert (done.files, done.damaged, done.rights) == (1, wanted, False)
    with Database(
        postgres_server.dsn(target, "weir_app"), patience=60.0, connect_patience=60.0
    ) as opened:
        report = recover(opened, str(elsewhere), request_id="r")
    assert (report["missing"], report["lost"][0]["events"]) == (wanted, 2)
    (folder / "weir.dump").write_bytes(b"cut")
    with raises("file_missing weir.dump"):
        restored(postgres_server, folder, target, elsewhere)
    close_shared()


def test_a_backup_is_for_its_owner_alone_also_in_a_folder_that_is_there(
    lane: str, settings: Settings, tmp_path: Path, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    folder, dsn = tmp_path / "backup", admin(postgres_server, test_database.name)
    folder.mkdir()
    folder.chmod(0o777)
    with Database(dsn, patience=9.0, connect_patience=9.0) as opened:
        opened.transaction(lambda c: c.exec_driver_sql(
            "CREATE ROLE team_of_backup; UPDATE weir_internal.stream SET owner = 'team_of_backup'"
        ))  # fmt: skip
    roles = backed_up(settings, dsn, folder).roles
    postgres_server.psql("DROP ROLE team_of_backup")
    assert {"team_of_backup", "weir_owner"} <= {*roles}  # which a restore makes
    modes = {one: one.stat().st_mode & 0o077 for one in (folder, *folder.rglob("*"))}
    assert not any(modes.values()), modes
    close_shared()


def test_a_restore_beside_the_warehouse_of_another_installation_changes_nothing(
    lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    backed_up(settings, admin(postgres_server, test_database.name), tmp_path / "backup")
    write_marker(str(tmp_path / "live"), Marker(str(UUID(int=7))))
    with raises("warehouse_not_owned another"):
        restored(postgres_server, tmp_path / "backup", target, tmp_path / "live")
    with Database(admin(postgres_server, target), patience=9.0, connect_patience=9.0) as opened:
        assert rows(opened, "SELECT FROM pg_namespace WHERE nspname ~ 'weir'") == []
    close_shared()


def test_no_backup_is_made_in_the_warehouse(
    lane: str, settings: Settings, test_database: TestDatabase, postgres_server: EmbeddedPostgres
) -> None:
    append(settings, lane, 0)
    dsn, folder = admin(postgres_server, test_database.name), Path(settings.warehouse, "backup")
    with raises("argument_invalid warehouse"):
        backed_up(settings, dsn, folder)
    assert not folder.exists()
    close_shared()


@pytest.mark.parametrize("path", ["../out", "/etc/out", "a/../../out", "a//b", "."])
def test_a_backup_that_names_a_path_outside_of_a_warehouse_is_refused(
    path: str, tmp_path: Path
) -> None:
    (tmp_path / "files.jsonl").write_text(json.dumps([path, 1, ""]) + "\n")
    with raises("argument_invalid below"):
        read_list(tmp_path / "files.jsonl")


def test_programs_are_chosen_by_their_version_and_not_by_their_place(
    fakes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = binaries.wheel()
    assert programs_for(18) == (18, wheel / "bin")
    assert programs_for(17) == programs_for(18)
    assert programs_for(16).folder != fakes
    newer = program(tmp_path / "newer", "19.1")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{newer}")
    assert programs_for(18).version == 18
    assert programs_for(19).folder == newer
    with raises("setup_failed 20 client"):
        programs_for(20)


def test_no_secret_is_in_the_arguments_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "pg_dump").write_text(
        f"#!/bin/sh\ntr '\\0' '\\n' </proc/$$/cmdline >{tmp_path}/arguments\n"
        f'(echo "$PGPASSWORD"; cat "$PGSERVICEFILE") >{tmp_path}/secrets\n'
    )
    (tmp_path / "pg_dump").chmod(0o755)
    dsn = "postgresql://me:first@host/db?sslpassword=second"
    Programs(18, tmp_path).run("pg_dump", dsn)
    arguments = (tmp_path / "arguments").read_text()
    assert "first" not in arguments
    assert "second" not in arguments
    assert "host='host'" in arguments
    assert (tmp_path / "secrets").read_text() == "first\n[weir-secrets]\nsslpassword=second\n"
    with raises("setting_invalid sslpassword"):
        Programs(18, tmp_path).run("pg_dump", "service=weir sslpassword=second")
    # libpq finds the server with the others.
    with raises("setup_failed refused"):
        programs_for(18).run("pg_dump", "host=127.0.0.1 port=1 sslpassword=second", "-Fc")
