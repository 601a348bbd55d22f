"""Writes the database of a small story at the present layout, for the migrations that come later.

`python -m tests.sql.seed` makes `seeds/<version>.sql.gz`, a plain dump. Once a migration follows
the version, the migration is tested on this dump, and the dump is not made again.
"""

import gzip
import subprocess
from pathlib import Path

from sqlalchemy import text

from docs.sql_story import tell
from weir.controller.seal import seal_stream
from weir.controller.streams import create_stream
from weir.database import migrate
from weir.database.connection import Database
from weir.local import binaries, logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.model.names import stream_name
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.groups.update import update_reader_group
from weir.retention.delete_stream import delete_stream

SEEDS = Path(__file__).parent / "seeds"
_RUN = "('weir_ingest', 'scheduled__1', 'append', -1, 1, 'ingest', '{}', 'succeeded')"


def more(database: Database) -> None:
    """Make what the story leaves out: streams that have ended, pins, limits, and what a job
    reported."""
    for name in ("nyc/weather", "nyc/taxis"):
        create_stream(
            database, stream_name(name), segments=2, routing_key="key", tags=("noaa",),
            retention="age", retain_max_age=86_400, request_id=f"seed/{name}",
        )  # fmt: skip
        seal_stream(database, stream_name(name), request_id=f"seed/{name}")
    delete_stream(database, stream_name("nyc/taxis"), request_id="seed/delete")
    update_reader_group(
        database, "delays", pins=[Pin.parse("nyc/flights 0..0.5 west")], request_id="seed/pin"
    )
    statement = text(
        f"""INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                 state) VALUES {_RUN}"""
    )
    database.transaction(lambda c: c.execute(statement))


def fill(server: EmbeddedPostgres, name: str) -> None:
    """Migrate a database of a server with Weir's logins, and let the story happen in it."""
    migrate.upgrade(server.dsn(name, "weir_owner"))
    dsn = server.dsn(name, "weir_app")
    with Database(dsn, patience=30.0, connect_patience=60.0) as database:
        tell(database)
        more(database)


def main() -> None:
    with throw_away_postgres() as server:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        fill(server, "weir")
        [version] = server.psql(
            "SELECT version_num FROM weir_internal.alembic_version", database="weir"
        ).split()
        program = [str(binaries.wheel() / "bin" / "pg_dump"), "--no-comments"]
        done = subprocess.run(
            [*program, server.dsn("weir", "postgres")], capture_output=True, text=True, check=True
        )
    SEEDS.mkdir(exist_ok=True)
    target = SEEDS / f"{version}.sql.gz"
    target.write_bytes(gzip.compress(done.stdout.encode(), mtime=0))
    print(f"{target} has {len(done.stdout.splitlines())} lines")


if __name__ == "__main__":
    main()
