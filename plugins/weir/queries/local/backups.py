"""What a backup is made of. Made by `make queries` from sql/queries/local/backups.sql."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text

MOMENT = text(
    """SELECT installation_id, pg_export_snapshot() AS snapshot,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       to_char(clock_timestamp(), 'YYYY-MM-DD HH24:MI:SS') AS at,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits,
       CAST((SELECT pg_get_userbyid(nspowner) FROM pg_namespace WHERE nspname = 'weir_internal') AS text)
           AS owner, incarnation
FROM installation"""
)


class Moment(NamedTuple):
    """A row of `moment`."""

    installation_id: UUID
    snapshot: str
    server: int
    at: str
    waits: str
    owner: str
    incarnation: str


def moment(connection: Connection) -> Moment:
    """Return which installation this is at the moment that the transaction sees, and who owns what Weir made, and let others see the same moment. The transaction may then wait for them as long as they take."""
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
    """SELECT rolname FROM pg_roles WHERE NOT starts_with(rolname, 'pg_') AND (oid IN
    (SELECT refobjid FROM pg_shdepend WHERE refclassid = 'pg_authid'::regclass AND dbid =
     (SELECT oid FROM pg_database WHERE datname = current_database()))
    OR rolname IN (SELECT owner FROM stream UNION SELECT owner FROM reader_group))
ORDER BY rolname"""
)


def roles(connection: Connection) -> list[str]:
    """Return the roles that own something in this database, or have a right to it: also the owners of streams and reader groups, of which Postgres does not know."""
    result = connection.execute(ROLES)
    return [row[0] for row in result]


ALONE = text(
    """SELECT pg_try_advisory_xact_lock(7305808869231650152) AS locked,
       (SELECT min(pid) FROM pg_stat_activity WHERE datname = current_database()
        AND application_name IN ('weir restore', 'pg_restore') AND pid <> pg_backend_pid()) AS other,
       set_config('application_name', 'weir restore', true) AS said,
       set_config('idle_in_transaction_session_timeout', '0', true) AS waits,
       CAST(current_setting('server_version_num') AS int) / 10000 AS server,
       CAST(current_user AS text) AS login, current_setting('is_superuser') = 'on' AS may_all"""
)


class Alone(NamedTuple):
    """A row of `alone`."""

    locked: bool
    other: int | None
    said: str
    waits: str
    server: int
    login: str
    may_all: bool


def alone(connection: Connection) -> Alone:
    """Let nobody else restore into this database before the transaction ends, as long as that takes. Return whether that is so, the process of who restores (`weir restore`, or the `pg_restore` of one that was killed, which goes on), the version of the server, and who this login is."""
    result = connection.execute(ALONE)
    row = result.one()
    return Alone._make(row)


THERE = text(
    """SELECT installation_id, EXISTS (SELECT FROM stream) AS used, incarnation,
       incarnation <> incarnation() AS moved,
       (SELECT obj_description(oid, 'pg_namespace') FROM pg_namespace
        WHERE nspname = 'weir_restoring') AS begun
FROM installation"""
)


class There(NamedTuple):
    """A row of `there`."""

    installation_id: UUID
    used: bool
    incarnation: str
    moved: bool
    begun: str | None


def there(connection: Connection) -> There:
    """Return which installation is here, whether it has streams, of which incarnation it says that it is, and whether of another one than this, and what `emptying` said, unless that restore ended."""
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
WHERE nspname IN ('weir', 'weir_internal', 'weir_staging', 'weir_ducklake', 'weir_restoring')
UNION ALL SELECT 'CREATE SCHEMA weir_restoring'
UNION ALL SELECT format('COMMENT ON SCHEMA weir_restoring IS %L', CAST(:said AS text))"""
)


def emptying(connection: Connection, *, roles: Sequence[str], said: str) -> list[str]:
    """Return statements that make roles that are missing, drop what a migration made, and say what is restored, in the comment of a schema that no dump has."""
    result = connection.execute(EMPTYING, {"roles": list(roles), "said": said})
    return [row[0] for row in result]


SAY = text("""UPDATE installation SET incarnation = :said WHERE incarnation <> incarnation()""")


def say(connection: Connection, *, said: str) -> None:
    """Say what was restored, until a recovery says which incarnation this is."""
    result = connection.execute(SAY, {"said": said})
    result.close()


END = text("""DROP SCHEMA IF EXISTS weir_restoring""")


def end(connection: Connection) -> None:
    """Drop what `emptying` made."""
    result = connection.execute(END)
    result.close()


USERS = text(
    """SELECT path, 'stream ' || stream_name AS of FROM data_file WHERE path = ANY(CAST(:paths AS text[]))
UNION SELECT f.path, 'adjunct store ' || s.name FROM adjunct_file f JOIN adjunct_store s USING (store_id)
WHERE f.path = ANY(CAST(:paths AS text[]))"""
)


class Users(NamedTuple):
    """A row of `users`."""

    path: str
    of: str


def users(connection: Connection, *, paths: Sequence[str]) -> list[Users]:
    """Return files with the streams, or the adjunct stores, that they are of."""
    result = connection.execute(USERS, {"paths": list(paths)})
    return [Users._make(row) for row in result]
