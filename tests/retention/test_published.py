"""A database all of whose tables are published, as logical replication and change feeds do it."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.world.garbage import sweep
from tests.world.groups import Group, stage_numbers
from tests.world.streams import Lane, rows, unique
from weir.annex.recovery.recover import recover
from weir.controller.expiry import expire
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.seal import seal_stream
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.errors import DatabaseFailed
from weir.history.job_runs import prune_runs
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.checkpoints.periodic import prune_checkpoints, settle_all
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.readers import expire as expire_readers
from weir.reader_groups.outputs.tables import sweep_staging
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream
from weir.retention.prune import prune
from weir.retention.run import retain

TABLE = "public.numbers"


@pytest.fixture
def published(postgres_server: EmbeddedPostgres, test_database: TestDatabase) -> None:
    """Publish all tables, those to come too, and make one for results."""
    dsn = postgres_server.dsn(test_database.name, "postgres")
    with Database(dsn, patience=60.0, connect_patience=60.0) as superuser:
        for statement in (
            "CREATE TABLE public.numbers (n bigint PRIMARY KEY, said text)",
            "GRANT SELECT, INSERT ON public.numbers TO weir_jobs, weir_publisher",
            "CREATE TABLE public.bare (n bigint)",
            "GRANT ALL ON public.bare TO weir_jobs",
            "CREATE PUBLICATION everything FOR ALL TABLES",
        ):
            superuser.transaction(lambda c, s=statement: c.exec_driver_sql(s))  # type: ignore[misc]


def test_every_change_of_metadata_goes_through_where_all_tables_are_published(
    published: None, database: Database, tmp_path: Path
) -> None:
    def change(statement: str) -> Any:
        return database.transaction(lambda c: c.exec_driver_sql(statement))

    change("INSERT INTO public.bare VALUES (1)")
    with pytest.raises(DatabaseFailed, match="publication"):
        change("UPDATE public.bare SET n = 2")  # so the publication is at work

    root = str(tmp_path)
    check_warehouse_ownership(database, root)
    lane = Lane.made(database, retention="consumed")
    lane.append({"0.0": [5, 5], "1.0": [5, 5]}, inputs=["one.csv"])
    abort(database, lane.opened("given up"))
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open(budget=4)
    reader.commit(batch, tables=[stage_numbers(group, batch, TABLE)])
    assert len(rows(database, f"SELECT n FROM {TABLE}")) == 2
    lane.scale("0.0")
    lane.append({lane.active()[0]: 2})
    while (more := reader.open(budget=100)) is not None:
        reader.commit(more)
    group.checkpoint("here", unique("request"))
    assert capture(database)
    assert settle_all(database)[1] == []
    assert retain(database, [])[0]["events"] > 0
    lane.truncate(", ".join(f"{name}={end}" for name, end in lane.tail().items()))
    recover(database, root, unknown_files="keep", request_id=unique("recover"))
    for one in (
        partial(sweep, database, root, 0.0), partial(prune, database, 0.0),
        partial(expire, database, 1.0), partial(expire_readers, database, 0.0),
        partial(prune_checkpoints, database, 0.0), partial(prune_batches, database, 0.0),
        partial(prune_runs, database, 0.0), partial(sweep_staging, database),
        partial(seal_stream, database, lane.name, request_id=unique("seal")),
        partial(delete_reader_group, database, group.name, request_id=unique("delete")),
        partial(delete_stream, database, lane.name, request_id=unique("delete")),
        partial(sweep, database, root, 0.0),
    ):  # fmt: skip
        one()
    again = Lane.made(database, name=str(lane.name))
    again.append({again.active()[0]: 3})
