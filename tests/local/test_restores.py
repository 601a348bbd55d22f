"""What a restore that was killed, or meets another one, leaves; and what it says."""

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psycopg2
import pytest

from tests.arrow.conftest import lake
from tests.conftest import TestDatabase
from tests.crash.jobs import wait_for
from tests.local.test_backups import (
    REPOSITORY,
    admin,
    append,
    backed_up,
    lane,
    read,
    restored,
    target,
)
from tests.raises import raises
from tests.small_disk import fill, mounted
from tests.warehouse.object_store import ObjectStore
from tests.world.streams import rows
from weir.annex.recovery.recover import recover
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.installation.opened import close_shared
from weir.local import backup, postgres_programs, restore
from weir.local.backup import FILES, back_up, read_manifest
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.postgres_programs import Programs
from weir.programs.opening import shared
from weir.settings import Settings

__all__ = ["lake", "lane", "target"]

# Stops a restore when it comes to a function, given as its module, class and name.
STOP = """
import os, signal, sys, time, importlib
from weir.terminal.__main__ import main
module, name = importlib.import_module(sys.argv.pop(1)), sys.argv.pop(1)
whole, before = getattr(module, name), sys.argv.pop(1) == "before"
def stop(*given, **named):
    found = None if before else whole(*given, **named)
    os.kill(os.getpid(), signal.SIGKILL)
setattr(module, name, stop)
sys.exit(main(sys.argv[1:]))
"""


# Stops a restore while its pg_restore waits for what another session made, alone or with it.
MIDDLE = """
import os, signal, sys, threading, time
import psycopg2
from weir.local.postgres_programs import Programs
from weir.terminal.__main__ import main
whole, both = Programs.run, sys.argv.pop(1) == "both"
def run(self, program, dsn, *given):
    if program == "pg_restore" and dsn:
        held, seen = psycopg2.connect(dsn), psycopg2.connect(dsn)
        held.cursor().execute("CREATE SCHEMA weir_staging")
        seen.autocommit = True
        threading.Thread(target=stop, args=[seen.cursor()]).start()
    whole(self, program, dsn, *given)
def stop(cursor):
    waits = False
    while not waits:
        time.sleep(0.01)
        cursor.execute("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' "
                       "AND application_name = 'pg_restore' AND datname = current_database()")
        waits = cursor.fetchone()[0]
    os.killpg(0, signal.SIGKILL) if both else os.kill(os.getpid(), signal.SIGKILL)
Programs.run = run
sys.exit(main(sys.argv[1:]))
"""


def environ(server: EmbeddedPostgres, name: str, warehouse: Path, state: Path) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(REPOSITORY / "plugins"), "WEIR_STATE": str(state),
        "WEIR_DATABASE": server.dsn(name, "weir_app"), "WEIR_WAREHOUSE": str(warehouse),
        "WEIR_DATABASE_OWNER": admin(server, name),
    }  # fmt: skip


def opened(server: EmbeddedPostgres, name: str, by: str = "weir_app") -> Database:
    return Database(server.dsn(name, by), patience=60.0, connect_patience=60.0)


def test_a_restore_that_is_killed_anywhere_lets_nobody_append_and_goes_on(
    lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    for number in range(9):
        append(settings, lane, number)
    folder, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    backed_up(settings, admin(postgres_server, test_database.name), folder)
    there = replace(
        settings, database=postgres_server.dsn(target, "weir_app"), warehouse=str(elsewhere)
    )
    for step in (
        "_files before", "_put after", "_files after", "_database before", "programs_for before",
        "_database after",
    ):  # fmt: skip
        name, when = step.split()
        done = subprocess.run(
            [sys.executable, "-c", STOP, "weir.local.restore", name, when, "restore", str(folder)],
            env=environ(postgres_server, target, elsewhere, settings.state), cwd=tmp_path,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL, done.stderr
        there_are = len([*elsewhere.rglob("*.parquet")])
        assert there_are == 0 if step == "_files before" else 0 < there_are <= 9
        if step == "_put after":
            assert there_are < 9
        if step == "programs_for before":  # which has emptied the database
            continue
        with opened(postgres_server, target) as database:
            wanted = "database_restored" if step == "_database after" else "warehouse_not_owned"
            with raises(wanted):
                check_warehouse_ownership(database, str(elsewhere))
    assert restored(postgres_server, folder, target, elsewhere).damaged == []
    with opened(postgres_server, target) as database:
        recover(database, str(elsewhere), unknown_files="keep", request_id="r")
    assert read(there, lane) == [*range(9)]
    assert [one for one in elsewhere.rglob("*") if one.name.endswith(".new")] == []
    close_shared()


@pytest.mark.parametrize("who", ["both", "it"])
def test_a_restore_that_is_killed_in_the_middle_of_pg_restore_goes_on(
    who: str, lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    append(settings, lane, 0)
    folder, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    backed_up(settings, admin(postgres_server, test_database.name), folder)
    done = subprocess.run(
        [sys.executable, "-c", MIDDLE, who, "restore", str(folder)],
        env=environ(postgres_server, target, elsewhere, settings.state), cwd=tmp_path,
        capture_output=True, text=True, start_new_session=True,
    )  # fmt: skip
    assert done.returncode == -signal.SIGKILL, done.stderr
    running = f"""SELECT FROM pg_stat_activity WHERE datname = '{target}'
        AND application_name = 'pg_restore'"""
    with opened(postgres_server, test_database.name, "postgres") as database:
        wait_for("the end of pg_restore", lambda: not rows(database, running))
    with opened(postgres_server, target, "postgres") as database:
        there = rows(database, "SELECT nspname FROM pg_namespace WHERE nspname ~ '^weir_'")
        assert (len(there) == 1) == (who == "both")  # which say from what it is restored
    capsys.readouterr()
    assert restored(postgres_server, folder, target, elsewhere).damaged == []
    said = "the database was restored from this backup before" in capsys.readouterr().out
    assert said == (who == "it")  # pg_restore went on alone
    with opened(postgres_server, target) as database:
        with raises("database_restored"):
            check_warehouse_ownership(database, str(elsewhere))
        recover(database, str(elsewhere), unknown_files="keep", request_id="r")
    close_shared()


def test_a_second_restore_waits_for_no_first_one_and_mixes_nothing(
    lane: str, settings: Settings, tmp_path: Path, target: str, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    dsn, elsewhere = admin(postgres_server, test_database.name), tmp_path / "elsewhere"
    for number in range(2):
        append(settings, lane, number)
        backed_up(settings, dsn, tmp_path / str(number))
    first, second = tmp_path / "0", tmp_path / "1"
    whole, refused = postgres_programs.Programs.run, list[str]()

    def run(self: Programs, name: str, *arguments: str) -> None:
        if arguments[0]:
            with raises("lock_held another"):  # the folder of the other one does not matter
                restored(postgres_server, second, target, tmp_path / "another")
            refused.append(name)
        whole(self, name, *arguments)

    with monkeypatch.context() as during:
        during.setattr(postgres_programs.Programs, "run", run)
        restored(postgres_server, first, target, elsewhere)
    assert refused == ["pg_restore"]
    with raises("argument_invalid another backup"):
        restored(postgres_server, second, target, elsewhere)
    assert len([*elsewhere.rglob("*.parquet")]) == 1
    # The pg_restore of a restore that was killed goes on for a moment.
    other = psycopg2.connect(admin(postgres_server, target), application_name="pg_restore")
    with contextlib.closing(other), raises("lock_held process"):
        restored(postgres_server, first, target, elsewhere)
    close_shared()


def test_a_restore_takes_no_streams_that_were_made_meanwhile_and_no_older_server(
    lane: str, settings: Settings, tmp_path: Path, target: str, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    folder = tmp_path / "backup"
    backed_up(settings, admin(postgres_server, test_database.name), folder)
    manifest = read_manifest(folder)
    dsn = admin(postgres_server, target)
    newer = replace(manifest, server=99)
    with raises("database_unsuitable 99"):
        restore.restore(folder, newer, dsn, dsn, str(tmp_path / "x"), say=print)
    there = replace(settings, database=postgres_server.dsn(target, "weir_app"))
    whole = restore._files

    def files(*given: object) -> set[str]:
        shared(there).create_stream("shop/mine", "key")
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(restore, "_files", files)
    with raises("argument_invalid streams"):
        restored(postgres_server, folder, target, tmp_path / "elsewhere")
    with opened(postgres_server, target, "postgres") as database:
        assert rows(database, "SELECT stream FROM weir.streams") == [("shop/mine",)]
    close_shared()


@pytest.mark.parametrize("ended", [True, False])
def test_a_restored_database_that_was_recovered_and_moved_is_no_unfinished_restore(
    ended: bool, lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    folder, elsewhere = tmp_path / "backup", tmp_path / "elsewhere"
    backed_up(settings, admin(postgres_server, test_database.name), folder)
    postgres_server.psql(f"COMMENT ON DATABASE {target} IS 'mine'")
    with monkeypatch.context() as killed:
        if not ended:
            killed.setattr(restore, "_end", lambda *_: None)
        restored(postgres_server, folder, target, elsewhere)
    with opened(postgres_server, target) as database:
        said = "SELECT shobj_description(oid, 'pg_database') AS said FROM pg_database"
        assert rows(database, f"{said} WHERE datname = '{target}'") == [("mine",)]
        left = rows(database, "SELECT FROM pg_namespace WHERE nspname = 'weir_restoring'")
        assert len(left) == (not ended)
        recover(database, str(elsewhere), unknown_files="keep", request_id="r")
    there = replace(
        settings, database=postgres_server.dsn(target, "weir_app"), warehouse=str(elsewhere)
    )
    append(there, lane, 1)
    close_shared()
    moved = f"{target}_moved"
    postgres_server.psql(f"ALTER DATABASE {target} RENAME TO {moved}")
    postgres_server.psql(f"CREATE DATABASE {target} TEMPLATE {moved} OWNER weir_owner")
    with raises("argument_invalid another backup"):
        restored(postgres_server, folder, target, elsewhere)
    with opened(postgres_server, target) as database:
        recover(database, str(elsewhere), unknown_files="keep", request_id="r")
    backed_up(there, admin(postgres_server, target), tmp_path / "next")
    close_shared()
    for one in (target, moved):
        postgres_server.psql(f"DROP DATABASE {one} WITH (FORCE)")
    postgres_server.psql(f"CREATE DATABASE {target} OWNER weir_owner")
    assert restored(postgres_server, tmp_path / "next", target, tmp_path / "third").files == 2


def test_what_another_owner_had_belongs_to_the_owner_here(
    lane: str, settings: Settings, tmp_path: Path, target: str, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    dsn = admin(postgres_server, test_database.name)
    with Database(dsn, patience=9.0, connect_patience=9.0) as database:

        def run(statement: str) -> None:
            database.transaction(lambda c: c.exec_driver_sql(statement))

        run("CREATE ROLE elsewhere_owner; REASSIGN OWNED BY weir_owner TO elsewhere_owner")
        backed_up(settings, dsn, tmp_path / "backup")
        run("REASSIGN OWNED BY elsewhere_owner TO weir_owner; DROP ROLE elsewhere_owner")
    done = restored(postgres_server, tmp_path / "backup", target, tmp_path / "elsewhere")
    assert (done.files, done.rights) == (1, False)
    close_shared()


def test_what_is_lost_is_named_with_its_stream_and_the_exit_status_says_so(
    lane: str, settings: Settings, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    for number in range(4):
        append(settings, lane, number)
    folder, dsn = tmp_path / "backup", admin(postgres_server, test_database.name)
    shared(settings).define_adjunct_store("shop/last", lane)
    with Database(dsn, patience=9.0, connect_patience=9.0) as database:
        database.transaction(lambda c: c.exec_driver_sql(
            """INSERT INTO adjunct_version (store_id, version, definition, state, kind, from_cut,
            cut, clock, builder, started_at, lease_until)
            SELECT store_id, 1, 1, 'building', 'rebuilt', '{}', '{}', 1, 'me', now(), now()
            FROM adjunct_store;
            INSERT INTO adjunct_file SELECT store_id, '_weir_adjunct=1/x.parquet', 'table', 1, 0, 0,
            1, 1 FROM adjunct_store"""
        ))  # fmt: skip
    assert backed_up(settings, dsn, folder).lacks == ["_weir_adjunct=1/x.parquet"]
    gone, cut, flipped, _ = sorted((folder / FILES).rglob("*.parquet"))
    gone.unlink()
    os.truncate(cut, 100)
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "weir.terminal", "restore", str(folder)],
        env=environ(postgres_server, target, tmp_path / "elsewhere", settings.state),
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    for one in (gone, cut, flipped):
        path = one.relative_to(folder / FILES)
        assert f"{path} of the stream shop/orders is missing or damaged" in done.stderr
    assert "shop/orders: 3 events lost" in done.stdout
    wanted = (
        "_weir_adjunct=1/x.parquet of the adjunct store shop/last is missing or damaged; delete"
    )
    assert wanted in done.stderr
    close_shared()


def test_a_full_disk_ends_a_backup_and_a_restore_with_one_sentence_and_they_go_on(
    lane: str, settings: Settings, tmp_path: Path, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres, target: str,
) -> None:  # fmt: skip
    for number in range(3):
        append(settings, lane, number)
    dsn = admin(postgres_server, test_database.name)
    with mounted(tmp_path / "disk", "8m") as disk:
        (disk / "backup").mkdir()
        fill(disk)
        with raises("disk_full backup"):
            backed_up(settings, dsn, disk / "backup")
        os.truncate(disk / "filler", (disk / "filler").stat().st_size - 65536)
        with raises("disk_full pg_dump"):
            backed_up(settings, dsn, disk / "backup")
        os.unlink(disk / "filler")
        assert backed_up(settings, dsn, disk / "backup").files == 3
        assert not [*(disk / "backup").glob("weir.dump.*")]
        fill(disk)
        with raises("disk_full warehouse"):
            restored(postgres_server, disk / "backup", target, disk / "elsewhere")
        os.unlink(disk / "filler")
        done = restored(postgres_server, disk / "backup", target, disk / "elsewhere")
        assert (done.files, done.damaged) == (3, [])
    close_shared()


def test_a_backup_says_who_writes_into_its_folder(
    lane: str, settings: Settings, tmp_path: Path, test_database: TestDatabase,
    postgres_server: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    append(settings, lane, 0)
    dsn = admin(postgres_server, test_database.name)
    whole = backup._dump

    def dump(*given: object) -> object:
        with raises(f"lock_held {os.getpid()}"):
            backed_up(settings, dsn, tmp_path / "backup")
        return whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(backup, "_dump", dump)
    assert backed_up(settings, dsn, tmp_path / "backup").files == 1
    close_shared()


def test_a_warehouse_on_an_object_store_is_backed_up_and_restored(
    database: Database, settings: Settings, lake: ObjectStore, tmp_path: Path, target: str,
    test_database: TestDatabase, postgres_server: EmbeddedPostgres,
) -> None:  # fmt: skip
    here = replace(settings, warehouse="s3a://lake/weir")
    shared(here).create_stream("shop/orders", "key")
    for number in range(3):
        append(here, "shop/orders", number)
    dsn = admin(postgres_server, test_database.name)
    listed = backed_up(here, dsn, tmp_path / "listed", copied=False)
    copied = backed_up(here, dsn, tmp_path / "copied")
    assert (listed.files, listed.lacks) == (copied.files, copied.lacks) == (3, [])
    for folder, warehouse in (("copied", "s3a://lake/next"), ("listed", "s3a://lake/weir")):
        postgres_server.psql(f"DROP DATABASE {target} WITH (FORCE)")
        postgres_server.psql(f"CREATE DATABASE {target} OWNER weir_owner")
        manifest, owner = read_manifest(tmp_path / folder), admin(postgres_server, target)
        done = restore.restore(tmp_path / folder, manifest, owner, owner, warehouse, say=print)
        assert (done.files, done.damaged) == (3, [])
        with opened(postgres_server, target, "postgres") as there:
            recover(there, warehouse, unknown_files="keep", request_id="r")
        found = replace(here, database=postgres_server.dsn(target, "postgres"), warehouse=warehouse)
        assert read(found, "shop/orders") == [0, 1, 2]
        close_shared()
    with raises("setting_invalid spark-submit"):
        back_up(database, dsn, "hdfs://host/weir", tmp_path / "x", copied=True, say=print)
