"""What a backup is made of. Made by `make queries` from sql/queries/local/backups.sql."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

MOMENT = text(
    """SELECT installation_id, pg_export_snapshot() AS snapshot,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS') AS at,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits
FROM installation"""
)


class Moment(NamedTuple):
    """A row of `moment`."""

    installation_id: UUID
    snapshot: str
    server: int
    at: str
    waits: str


def moment(connection: Connection) -> Moment:
    """Return which installation this is at the moment that the transaction sees, and let others see the same moment. The transaction may then wait for them as long as they take."""
    result = connection.execute(MOMENT)
    row = result.one()
    return Moment._make(row)


FILES = text(
    """SELECT path, bytes FROM data_file UNION SELECT path, bytes FROM adjunct_file ORDER BY path"""
)


class Files(NamedTuple):
    """A row of `files`."""

    path: str
    bytes: int


def files(connection: Connection) -> list[Files]:
    """Return the files that have events, and those of adjunct stores."""
    result = connection.execute(FILES)
    return [Files._make(row) for row in result]


ROLES = text(
    """SELECT DISTINCT r.rolname FROM pg_shdepend d JOIN pg_roles r ON r.oid = d.refobjid
WHERE d.dbid = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND d.refclassid = 'pg_authid'::regclass AND NOT starts_with(r.rolname, 'pg_')
ORDER BY r.rolname"""
)


def roles(connection: Connection) -> list[str]:
    """Return the roles that own something in this database, or have a right to it."""
    result = connection.execute(ROLES)
    return [row[0] for row in result]


THERE = text(
    """SELECT installation_id, EXISTS (SELECT FROM stream) AS used, incarnation <> incarnation() AS moved
FROM installation"""
)


class There(NamedTuple):
    """A row of `there`."""

    installation_id: UUID
    used: bool
    moved: bool


def there(connection: Connection) -> There:
    """Return which installation is here, whether it has streams, and whether it is one that was restored and not recovered since."""
    result = connection.execute(THERE)
    row = result.one()
    return There._make(row)


MAY_GIVE = text("""SELECT current_setting('is_superuser') = 'on' AS may_give""")


def may_give(connection: Connection) -> bool:
    """Return whether this login may give things to any role."""
    result = connection.execute(MAY_GIVE)
    value: bool = result.scalar_one()
    return value


EMPTYING = text(
    """SELECT format('CREATE ROLE %I', r) AS statement
FROM unnest(CAST(:roles AS text[])) AS r WHERE r NOT IN (SELECT rolname FROM pg_roles)
UNION ALL
SELECT format('DROP SCHEMA %I CASCADE', nspname) FROM pg_namespace
WHERE nspname IN ('weir', 'weir_internal', 'weir_staging', 'weir_ducklake')"""
)


def emptying(connection: Connection, *, roles: Sequence[str]) -> list[str]:
    """Return statements that make roles that are missing, and drop what a migration made."""
    result = connection.execute(EMPTYING, {"roles": list(roles)})
    return [row[0] for row in result]
