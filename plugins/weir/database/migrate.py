"""Brings the schema `weir` up to date: tables by Alembic, then functions, views and grants anew.

`python -m weir.database.migrate` uses the login of WEIR_DATABASE_OWNER (anything libpq takes),
which must own the database; jobs and readers have lesser logins.
"""

import os
import sys
from importlib import resources
from pathlib import Path

import psycopg2
import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection

from weir.database import connection_string
from weir.errors import InvalidInput, Unavailable

# Two migrations of one database wait for each other on this advisory lock.
_LOCK = 7_305_808_869_231_650_151  # "weir" and a few random bits


def sql_folder() -> Path:
    """Return the folder of the SQL files: the package weir.sql if installed, `sql/` in the source
    tree.
    """
    tree = Path(__file__).parents[3] / "sql"
    return tree if tree.is_dir() else Path(str(resources.files("weir.sql")))


def upgrade(dsn: str) -> None:
    """Migrate the database that `dsn` (libpq) names, as its owner; change nothing if it is up to
    date.

    One transaction: everything or nothing. Raises Unavailable if the database cannot be reached or
    migrated.
    """
    connection_string.check(dsn, "the owner's connection string (WEIR_DATABASE_OWNER)")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg2://",
        creator=lambda: psycopg2.connect(dsn),
        poolclass=sqlalchemy.NullPool,
    )
    try:
        with engine.begin() as connection:
            connection = connection.execution_options(no_parameters=True)  # '%' is just '%'
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            connection.exec_driver_sql("SET LOCAL lock_timeout = '60s'; SET LOCAL timezone = 'UTC'")
            _apply(connection)
    except sqlalchemy.exc.DBAPIError as error:
        reason = str(error.orig).strip().splitlines()[0]
        reason = connection_string.masked(reason, dsn)
        raise Unavailable(
            "database_not_migrated", f"the database can't be migrated: {reason}"
        ) from None


def _apply(connection: Connection) -> None:
    folder = sql_folder()
    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS weir")
    # The files may name functions that a later file defines.
    connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
    config = Config()
    config.set_main_option("script_location", str(folder / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    # Views and functions hold no data, so they are simply made anew from their files.
    connection.exec_driver_sql(
        """DO $$ DECLARE found text; BEGIN
             FOR found IN SELECT format('weir.%I', viewname) FROM pg_views WHERE schemaname = 'weir'
             LOOP EXECUTE 'DROP VIEW IF EXISTS ' || found || ' CASCADE'; END LOOP;
             FOR found IN SELECT oid::regprocedure::text FROM pg_proc
                          WHERE pronamespace = 'weir'::regnamespace
             LOOP EXECUTE 'DROP FUNCTION IF EXISTS ' || found || ' CASCADE'; END LOOP;
           END $$"""
    )
    for path in [*sorted(folder.glob("functions/*.sql")), *sorted(folder.glob("views/*.sql"))]:
        connection.exec_driver_sql(path.read_text())
    connection.exec_driver_sql((folder / "roles.sql").read_text())


def main() -> int:
    """Run the command line: migrate the database of WEIR_DATABASE_OWNER. Returns the exit
    status.
    """
    dsn = os.environ.get("WEIR_DATABASE_OWNER", "service=weir_owner")
    try:
        upgrade(dsn)
    except (Unavailable, InvalidInput) as error:
        print(f"weir: {error}", file=sys.stderr)
        return 1
    print("weir: the schema is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
