"""A database that was restored, moved or taken over is known by where it is, or by what it gives
out again, and is refused until it is recovered."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.annex.recovery.test_recover import on_disk, write
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.world.garbage import sweep
from tests.world.servers import weir_server
from tests.world.streams import Lane, run
from weir.annex.recovery.recover import recover
from weir.controller.expiry import expire
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.local import binaries
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.programs.opening import shared
from weir.settings import Settings


def test_a_backup_younger_than_the_last_sweep_is_known_by_where_it_is(
    database: Database, tmp_path: Path, restore: Callable[[Database], Database]
) -> None:
    """What was being appended at the backup was committed after it: it is not to be deleted."""
    check_warehouse_ownership(database, str(tmp_path))
    lane = Lane.made(database)
    lane.append({"0.0": 1})
    in_flight = lane.opened("in flight", lease=0.0)
    sweep(database, str(tmp_path), 0.0)
    restored = restore(database)
    lane.commit(in_flight, {"0.0": 3})
    write(lane, tmp_path)
    there = on_disk(tmp_path)
    assert len(there) == 2
    expire(restored, 0.0)
    with raises("database_restored weir recover changed"):
        check_warehouse_ownership(restored, str(tmp_path))
    with raises("database_restored weir recover changed"):
        sweep(restored, str(tmp_path), 0.0)
    report = recover(restored, str(tmp_path), request_id="look")
    assert (report["restored"], report["unknown_files"]) == (True, 1)
    with raises("database_restored weir recover changed"):
        sweep(restored, str(tmp_path), 0.0)
    report = recover(restored, str(tmp_path), unknown_files="keep", request_id="r")
    assert report["restored"] is True
    sweep(restored, str(tmp_path), 0.0)
    assert on_disk(tmp_path) == there
    assert recover(restored, str(tmp_path), request_id="again")["restored"] is False
    with raises("database_restored weir recover"):
        sweep(database, str(tmp_path), 0.0)


def test_a_new_installation_that_was_moved_before_its_first_append_can_be_recovered(
    database: Database, tmp_path: Path, restore: Callable[[Database], Database]
) -> None:
    moved = restore(database)
    with raises("database_restored weir recover changed"):
        check_warehouse_ownership(moved, str(tmp_path))
    recover(moved, str(tmp_path), unknown_files="keep", request_id="r")
    check_warehouse_ownership(moved, str(tmp_path))


def test_a_dump_that_is_restored_in_its_place_is_known(
    database: Database,
    test_database: TestDatabase,
    tmp_path: Path,
    postgres_server: EmbeddedPostgres,
) -> None:
    check_warehouse_ownership(database, str(tmp_path))
    there = ["-d", postgres_server.dsn(test_database.name, "postgres")]
    dump = str(tmp_path / "dump")
    programs = binaries.wheel() / "bin"
    subprocess.run([programs / "pg_dump", "-Fc", "-f", dump, *there], check=True)
    check_warehouse_ownership(database, str(tmp_path))
    database.dispose()
    subprocess.run([programs / "pg_restore", "--clean", *there, dump], check=True)
    with raises("database_restored weir recover changed"):
        check_warehouse_ownership(database, str(tmp_path))
    recover(database, str(tmp_path), unknown_files="keep", request_id="r")
    check_warehouse_ownership(database, str(tmp_path))


@pytest.mark.server
def test_what_was_a_standby_is_known_at_once(tmp_path: Path) -> None:
    with weir_server(keeps=True) as server:
        database = Database(server.dsn(), patience=60.0, connect_patience=60.0)
        check_warehouse_ownership(database, str(tmp_path))
        server.psql("CHECKPOINT")
        server.kill()
        server.start()
        check_warehouse_ownership(database, str(tmp_path))  # a crash is no failover
        Lane.made(database)
        server.kill()
        (server._data / "standby.signal").touch()
        server.start()
        server.psql("SELECT pg_promote()")
        # The checkpoint that notes the timeline takes minutes, as there is something to write.
        with raises("database_restored weir recover changed"):
            check_warehouse_ownership(database, str(tmp_path))
        recover(database, str(tmp_path), unknown_files="keep", request_id="r")
        check_warehouse_ownership(database, str(tmp_path))
        server.psql("CHECKPOINT")
        check_warehouse_ownership(database, str(tmp_path))
        database.dispose()


def test_a_copy_of_the_disk_from_after_the_last_sweep_is_known_by_the_first_number_given_out_again(
    database: Database, tmp_path: Path, restore: Callable[[Database], Database]
) -> None:
    lane = Lane.made(database)
    warehouse = tmp_path / "warehouse"
    table = pa.table({"key": ["a", "b"]})

    def append(to: Database, batch_id: str) -> Committed:
        settings = Settings(
            state=tmp_path, database=to._dsn, warehouse=str(warehouse), input_roots=(),
            output_roots=(),
        )  # fmt: skip
        return shared(settings).append(str(lane.name), table, writer_id="w", batch_id=batch_id)

    append(database, "known")
    sweep(database, str(warehouse), 0.0)
    restored = restore(database)
    # A copy that is put back in its place has all that it had there.
    run(restored, "UPDATE installation SET incarnation = incarnation()")
    append(database, "forgotten")
    there = on_disk(warehouse)
    sweep(restored, str(warehouse), 0.0)  # there is no telling yet, and nothing to delete
    with raises("database_restored weir recover nothing"):
        append(restored, "another")
    with raises("database_restored weir recover"):
        sweep(restored, str(warehouse), 0.0)
    assert on_disk(warehouse) == there
    recover(restored, str(warehouse), unknown_files="keep", request_id="r")
    append(restored, "another")
    sweep(restored, str(warehouse), 0.0)
    assert there < on_disk(warehouse)
