"""Upgrade the database: tables by migrations, then functions, views, comments and grants.

`python -m weir.database.migrate` uses the login of WEIR_DATABASE_OWNER (anything libpq takes),
which must own the database; jobs and readers have lesser logins.
"""

import os
import sys
from pathlib import Path

import sqlalchemy
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from weir.database import connection_string, refusals, session
from weir.database.definitions import grants, in_use, replace_definitions
from weir.errors import Busy, Conflict, InvalidInput, Unavailable
from weir.source_tree import beside

# Two migrations of one database wait for each other on this advisory lock.
_LOCK = 7_305_808_869_231_650_151  # "weir" and a few random bits
OLDEST_SERVER = 16  # the first that grants a role without its rights (SET, INHERIT)


def upgrade(dsn: str, folder: Path | None = None, patience: int = 60) -> None:
    """Migrate the database that `dsn` (libpq) names, as its owner. If it is up to date, only
    functions, views, comments and grants are set anew.

    `folder` has the SQL files: Weir's own unless a test gives others. One transaction: everything
    or nothing. Raises Unavailable if the database cannot be reached or migrated; Busy if others use
    a table for `patience` seconds; Conflict if the login lacks a right, if objects that are not
    Weir's use what the upgrade would drop, or if its layout is of a later version.
    """
    connection_string.check(dsn, "the owner's connection string (WEIR_DATABASE_OWNER)")
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg2://",
        creator=lambda: session.connect(dsn),
        poolclass=sqlalchemy.NullPool,
    )
    try:
        with engine.begin() as connection:
            connection = connection.execution_options(no_parameters=True)  # '%' is just '%'
            connection.exec_driver_sql("SET TRANSACTION READ WRITE")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{patience}s'")
            for name, value in session.MEANING.items():
                if name != "search_path" and not name.startswith("default_"):
                    connection.exec_driver_sql(f"SET LOCAL {name} = '{value}'")
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
            _apply(connection, folder or beside("sql"))
    except sqlalchemy.exc.DBAPIError as error:
        state = getattr(error.orig, "pgcode", None)
        if state == "2BP01":  # by a DROP of a migration
            raise in_use(error) from None
        reason = str(error.orig).strip().splitlines()[0]
        reason = connection_string.masked(reason, dsn)
        if state == "42501":
            raise Conflict(
                "not_permitted",
                f"the database can't be migrated, because the login lacks a right ({reason}); use "
                "the login that owns the database and may create roles.",
            ) from None
        if state == "55P03":
            raise Busy(
                "lock_held",
                f"the database can't be migrated, because others use its tables, or another "
                f"migration runs ({reason}); let their transactions end, and migrate again.",
            ) from None
        todo = (
            refusals.advice(state)
            if state
            else (refusals.login_advice(reason, "WEIR_DATABASE_OWNER")[0])
        )
        raise Unavailable(
            "database_unavailable",
            f"the database can't be migrated ({reason}); "
            f"{todo or 'mend that, and migrate again: nothing was changed'}.",
        ) from None


def newest_layout() -> str:
    """Return the layout to which this version of Weir migrates a database."""
    config = Config()
    config.set_main_option("script_location", str(beside("sql") / "migrations"))
    config.set_main_option("path_separator", "os")
    return str(ScriptDirectory.from_config(config).get_current_head())


def check_server(version: int) -> None:
    """Check the version of a server, as its setting server_version_num has it. Raises Conflict for
    one that lacks what the roles and views of Weir need."""
    if version < OLDEST_SERVER * 10_000:
        raise Conflict(
            "database_unsuitable",
            f"the server is PostgreSQL {version // 10_000}, and Weir needs {OLDEST_SERVER} or "
            "later; upgrade it, or use another one.",
        )


def check_encoding(encoding: str) -> None:
    """Check the encoding of a database, its setting server_encoding. Raises Conflict for one that
    can't hold every text, or that takes bytes for texts."""
    if encoding != "UTF8":
        raise Conflict(
            "database_unsuitable",
            f"the database has the encoding {encoding}, which can't hold the texts of all streams; "
            "use another one, made by CREATE DATABASE weir ENCODING 'UTF8' TEMPLATE template0.",
        )


def _apply(connection: Connection, folder: Path) -> None:
    version = connection.exec_driver_sql("SHOW server_version_num").scalar_one()
    check_server(int(version))
    check_encoding(connection.exec_driver_sql("SHOW server_encoding").scalar_one())
    connection.exec_driver_sql("CREATE SCHEMA IF NOT EXISTS weir_internal")
    # The files may name functions that a later file defines.
    connection.exec_driver_sql("SET LOCAL check_function_bodies = off")
    config = Config()
    config.set_main_option("script_location", str(folder / "migrations"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    _check_layout(connection, ScriptDirectory.from_config(config))
    command.upgrade(config, "head")
    replace_definitions(connection, folder)
    connection.exec_driver_sql(grants(folder))


def _check_layout(connection: Connection, migrations: ScriptDirectory) -> None:
    """Raise Conflict for a database that a later Weir migrated."""
    table = "weir_internal.alembic_version"
    if connection.exec_driver_sql(f"SELECT to_regclass('{table}')").scalar() is None:
        return
    statement = f"SELECT version_num FROM {table}"  # noqa: S608 - constants
    layout = connection.exec_driver_sql(statement).scalar_one()
    if layout not in {one.revision for one in migrations.walk_revisions()}:
        raise Conflict(
            "database_unsuitable",
            f"the database has layout {layout}, which this version of Weir does not know; "
            "install the version that migrated it, or a later one.",
        )


def main() -> int:
    """Run the command line: migrate the database of WEIR_DATABASE_OWNER. Returns the exit
    status.
    """
    dsn = os.environ.get("WEIR_DATABASE_OWNER", "service=weir_owner")
    try:
        upgrade(dsn)
    except (Conflict, Unavailable, InvalidInput) as error:
        print(f"weir: {error}", file=sys.stderr)
        return 1
    print("weir: the schema is up to date")
    return 0


if __name__ == "__main__":
    sys.exit(main())
