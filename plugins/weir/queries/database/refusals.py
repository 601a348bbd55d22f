"""What the database says after it has refused something. Made by `make queries` from sql/queries/database/refusals.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

STANDING = text(
    """SELECT current_setting('server_version_num')::integer AS version,
    current_setting('server_encoding') AS encoding,
    current_user AS login, n.oid IS NOT NULL AS migrated,
    has_schema_privilege(n.oid, 'USAGE') AS usable,
    EXISTS (SELECT FROM pg_roles WHERE rolname IN ('weir_jobs', 'weir_team')
        AND pg_has_role(oid, 'USAGE')) AS member
FROM (VALUES (1)) AS one (row) LEFT JOIN pg_namespace n ON n.nspname = 'weir_internal'"""
)


class Standing(NamedTuple):
    """A row of `standing`."""

    version: int
    encoding: str
    login: str
    migrated: bool
    usable: bool | None
    member: bool


def standing(connection: Connection) -> Standing:
    """Return how a login stands to Weir in a database: whether it may use the schema, and is a member of weir_jobs or weir_team. Null without Weir."""
    result = connection.execute(STANDING)
    row = result.one()
    return Standing._make(row)


LAYOUT = text("""SELECT version_num FROM weir_internal.alembic_version""")


def layout(connection: Connection) -> str:
    """Return the layout of the database."""
    result = connection.execute(LAYOUT)
    value: str = result.scalar_one()
    return value


OLDEST = text(
    """SELECT pid, usename FROM pg_stat_activity
WHERE datname = current_database() AND backend_xid IS NOT NULL
ORDER BY age(backend_xid) DESC LIMIT 1"""
)


class Oldest(NamedTuple):
    """A row of `oldest`."""

    pid: int
    usename: str


def oldest(connection: Connection) -> Oldest | None:
    """Return the session with the oldest transaction. The transaction that has locked a row has an id, which one can look up in every session."""
    result = connection.execute(OLDEST)
    row = result.one_or_none()
    return None if row is None else Oldest._make(row)


LIMIT = text("""SELECT nullif(current_setting('transaction_timeout', true), '0') AS most""")


def limit(connection: Connection) -> str | None:
    """Return how long a transaction of this login may take, which servers have from 17 on. The driver does not pass on what the server says when that is over."""
    result = connection.execute(LIMIT)
    value: str | None = result.scalar_one()
    return value
