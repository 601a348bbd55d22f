"""Restore an installation from a backup, into a database without streams.

The marker of the warehouse comes first, so that nobody appends there by an empty database, then the
files, then the database as one transaction: a restore that is interrupted has restored nothing that
anybody reads, and goes on when it is run again. A schema that no dump has says from what, and after
that the incarnation of the installation, until a recovery.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyarrow import fs
from sqlalchemy import Connection

from weir.database import migrate
from weir.database.connection import Database
from weir.errors import Busy, Conflict, InvalidInput, InvariantViolation
from weir.local.backup import DUMP, FILES, LIST, Manifest, Say, check, read_list, said_full
from weir.local.copied_files import Listed, Place, copy, each, put
from weir.local.postgres_programs import programs_for
from weir.queries.local import backups as sql
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER, read_marker


@dataclass(frozen=True)
class Restored:
    """What was restored, and what lacks: files that were missing when it was backed up, and those
    that are missing or damaged in the backup, or in the warehouse that it left where it was.
    `users`: the stream, or the adjunct store, that each of these is of."""

    at: str
    files: int
    bytes: int
    lacks: Sequence[str]
    damaged: Sequence[str]
    users: Mapping[str, str]
    rights: bool


def restore(
    folder: Path, manifest: Manifest, owner: str, admin: str, warehouse: str, *, say: Say
) -> Restored:
    """Restore a backup. `owner`: who migrates the database; `admin`: who may give things to others,
    or the owner, who restores neither other owners nor rights. Nor are they restored if another
    login owned what Weir made. The database has no streams.

    Raises InvalidInput if it has, Conflict if its server is too old, InvariantViolation if the
    warehouse is another installation's, and Busy while another restore writes into the database.
    """

    def alone(connection: Connection) -> Restored:
        here = sql.alone(connection)
        if here.other is not None or not here.locked:
            raise Busy(
                "lock_held",
                f"another restore writes into this database (process {here.other} of its server); "
                "wait until that ends, and run this again.",
            )
        # From 17 on, pg_dump writes a setting that a server of 16 does not know.
        if here.server < (needed := max(manifest.server, min(manifest.programs, 17))):
            raise Conflict(
                "database_unsuitable",
                f"the backup is of PostgreSQL {manifest.server}, dumped by programs of "
                f"{manifest.programs}, and this server is PostgreSQL {here.server}; restore into "
                f"one of {needed} or later.",
            )
        # What others own, the owner could not migrate, so it owns all.
        same = here.may_all or manifest.owner in ("", here.login)
        return _restore(folder, manifest, owner, admin if same else owner, warehouse, say)

    with Database(owner, patience=60.0, connect_patience=30.0) as database:
        return database.snapshot(alone)


def _restore(
    folder: Path, manifest: Manifest, owner: str, admin: str, warehouse: str, say: Say
) -> Restored:
    marker = read_marker(warehouse)
    if marker.installation_id not in ("", manifest.installation_id):
        raise InvariantViolation(
            "warehouse_not_owned",
            f"the warehouse {warehouse} belongs to another installation; name another one in "
            "weir.toml.",
        )
    damaged = {*check(folder, manifest, say)}
    migrate.upgrade(owner)
    with Database(admin, patience=60.0, connect_patience=30.0) as database:
        before = database.snapshot(lambda c: _restored_before(c, manifest))
        with said_full(f"of the warehouse {warehouse}"):
            if not marker.installation_id:
                _mark(manifest, warehouse)
            damaged |= _files(folder, manifest, warehouse, damaged, say)
        whole = database.snapshot(sql.may_give)
        if before:
            say("the database was restored from this backup before, and is kept")
        else:
            _database(database, folder, manifest, admin if whole else owner, whole, say)
        migrate.upgrade(owner)
        database.transaction(lambda c: _end(c, manifest))
        lost = [*manifest.lacks, *sorted(damaged)]
        users = database.snapshot(lambda c: sql.users(c, paths=lost))
    found = manifest.files - len(damaged)
    return Restored(
        manifest.at, found, manifest.bytes, manifest.lacks, sorted(damaged), dict(users), whole
    )


def _said(manifest: Manifest) -> str:
    return f"weir restore: from the backup of {manifest.at} ({manifest.dump_sha256})"


def _restored_before(connection: Connection, manifest: Manifest) -> bool:
    """Return whether the database was restored from this backup, and not recovered since. Raises
    InvalidInput if it has streams of anything else."""
    here, said = sql.there(connection), _said(manifest)
    # As dumped: a recovery, of which this does not know, would have changed it.
    begun = here.begun == said and here.incarnation == manifest.incarnation
    if here.used and not begun and here.incarnation != said:
        mine = str(here.installation_id) == manifest.installation_id and here.moved
        of = " of another backup" if mine else ""
        raise InvalidInput(
            "argument_invalid",
            f"the database has streams{of}, and a backup is restored into one without; name "
            "another database and another warehouse in weir.toml.",
        )
    return here.used


def _end(connection: Connection, manifest: Manifest) -> None:
    """Let the installation say from which backup it is, instead of the schema."""
    sql.say(connection, said=_said(manifest))
    sql.end(connection)


def _mark(manifest: Manifest, warehouse: str) -> None:
    """Write the marker of a warehouse that has none. Raises InvalidInput if that is to be where the
    backup left it."""
    if not manifest.copied:
        raise InvalidInput(
            "setting_invalid",
            f"the backup left the warehouse in {manifest.warehouse}, and {warehouse} is none; "
            "set warehouse in weir.toml to where it is.",
        )
    content = manifest.marker.encode()
    put(Place(*filesystem(warehouse)), MARKER, lambda write: (write(content),))


def _files(
    folder: Path, manifest: Manifest, warehouse: str, damaged: set[str], say: Say
) -> set[str]:
    """Put the files where the warehouse is; return those that lack."""
    target = Place(*filesystem(warehouse))
    files = [one for one in read_list(folder / LIST) if one.path not in damaged]
    source = Place(fs.LocalFileSystem(), str(folder / FILES))
    work: Callable[[Listed], Listed | None] = partial(_there, target)
    if manifest.copied:
        work = partial(_put, source, target)
    return {one.path for one, found in each("restored", files, work, say) if found is None}


def _there(target: Place, one: Listed) -> Listed | None:
    return one if target.size(one.path) == one.bytes else None


def _put(source: Place, target: Place, one: Listed) -> Listed | None:
    """Copy a file unless it is there, as it is."""
    if target.size(one.path) == one.bytes and target.read(one.path) == one:
        return one
    return one if copy(source, target, one.path) == one else None


def _database(
    database: Database, folder: Path, manifest: Manifest, login: str, whole: bool, say: Say
) -> None:
    """Replace what a migration made in a database without streams by what was dumped."""

    def empty(connection: Connection) -> None:
        _restored_before(connection, manifest)  # somebody may have made streams meanwhile
        plain = connection.execution_options(no_parameters=True)  # '%' is just '%'
        roles = manifest.roles if whole else []
        for statement in sql.emptying(connection, roles=roles, said=_said(manifest)):
            plain.exec_driver_sql(statement)

    database.transaction(empty)
    programs = programs_for(manifest.programs)
    say(f"restoring the database by the programs of PostgreSQL {programs.version}")
    rights = [] if whole else ["--no-owner", "--no-privileges"]
    programs.run(
        "pg_restore", login, "--single-transaction", "--exit-on-error",
        *rights, str((folder / DUMP).absolute()),
    )  # fmt: skip
