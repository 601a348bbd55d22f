"""Restore an installation from a backup, into a database without streams.

The files come first, and the database as one transaction, so that a restore that is interrupted
has restored nothing that anybody reads, and goes on when it is run again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyarrow import fs
from sqlalchemy import Connection

from weir.database import migrate
from weir.database.connection import Database
from weir.errors import InvalidInput, InvariantViolation
from weir.local.backup import DUMP, FILES, LIST, Manifest, Say, check, read_list
from weir.local.copied_files import Listed, Place, copy, each
from weir.local.postgres_programs import programs_for
from weir.queries.local import backups as sql
from weir.warehouse.filesystem import filesystem, make_folder
from weir.warehouse.marker import MARKER, read_marker


@dataclass(frozen=True)
class Restored:
    """What was restored, and what lacks: files that were missing when it was backed up, and those
    that are missing or damaged in the backup, or in the warehouse that it left where it was."""

    at: str
    files: int
    bytes: int
    lacks: Sequence[str]
    damaged: Sequence[str]
    rights: bool


def restore(
    folder: Path, manifest: Manifest, owner: str, admin: str, warehouse: str, *, say: Say
) -> Restored:
    """Restore a backup. `owner`: who migrates the database; `admin`: who may give things to others,
    or the owner, who restores neither other owners nor rights. The database has no streams.

    Raises InvalidInput if it has, and InvariantViolation if the warehouse is another
    installation's.
    """
    marker = read_marker(warehouse)
    if marker.installation_id not in ("", manifest.installation_id):
        raise InvariantViolation(
            "warehouse_not_owned",
            f"the warehouse {warehouse} belongs to another installation; name another one in "
            "weir.toml.",
        )
    damaged = {*check(folder, manifest, say)}
    database = Database(owner, patience=60.0, connect_patience=30.0)
    try:
        migrate.upgrade(owner)
        here = database.snapshot(sql.there)
        mine = str(here.installation_id) == manifest.installation_id
        if here.used and not (mine and here.moved):
            raise InvalidInput(
                "argument_invalid",
                "the database has streams, and a backup is restored into one without; name another "
                "database and another warehouse in weir.toml.",
            )
        damaged |= _files(folder, manifest, warehouse, damaged, say)
        with Database(admin, patience=60.0, connect_patience=30.0) as as_admin:
            whole = as_admin.snapshot(sql.may_give)
        if here.used:
            say("the database was restored before, from this backup or another one, and is kept")
        else:
            _database(folder, manifest, owner, admin, whole, say)
        migrate.upgrade(owner)
    finally:
        database.dispose()
    found = manifest.files - len(damaged)
    return Restored(
        manifest.at, found, manifest.bytes, manifest.lacks, sorted(damaged), rights=whole
    )


def _files(
    folder: Path, manifest: Manifest, warehouse: str, damaged: set[str], say: Say
) -> set[str]:
    """Put the files where the warehouse is, with its marker last; return those that lack."""
    target = Place(*filesystem(warehouse))
    files = [one for one in read_list(folder / LIST) if one.path not in damaged]
    source = Place(fs.LocalFileSystem(), str(folder / FILES))
    work: Callable[[Listed], Listed | None] = partial(_there, target)
    if manifest.copied:
        work = partial(_put, source, target)
    lacks = {one.path for one, found in each("restored", files, work, say) if found is None}
    if target.size(MARKER) is None:
        if not manifest.copied:
            raise InvalidInput(
                "setting_invalid",
                f"the backup left the warehouse in {manifest.warehouse}, and {warehouse} is none; "
                "set warehouse in weir.toml to where it is.",
            )
        make_folder(target.system, target.base)
        with target.system.open_output_stream(f"{target.base}/{MARKER}") as out:
            out.write(manifest.marker.encode())
    return lacks


def _there(target: Place, one: Listed) -> Listed | None:
    return one if target.size(one.path) == one.bytes else None


def _put(source: Place, target: Place, one: Listed) -> Listed | None:
    """Copy a file unless it is there, as it is."""
    if target.size(one.path) == one.bytes and target.read(one.path) == one:
        return one
    return one if copy(source, target, one.path) == one else None


def _database(
    folder: Path, manifest: Manifest, owner: str, admin: str, whole: bool, say: Say
) -> None:
    """Replace what a migration made in a database without streams by what was dumped."""

    def empty(connection: Connection) -> None:
        plain = connection.execution_options(no_parameters=True)  # '%' is just '%'
        for statement in sql.emptying(connection, roles=manifest.roles if whole else []):
            plain.exec_driver_sql(statement)

    with Database(admin, patience=60.0, connect_patience=30.0) as database:
        database.transaction(empty)
    programs = programs_for(manifest.programs)
    say(f"restoring the database by the programs of PostgreSQL {programs.version}")
    rights = [] if whole else ["--no-owner", "--no-privileges"]
    programs.run(
        "pg_restore", admin if whole else owner, "--single-transaction", "--exit-on-error",
        *rights, str((folder / DUMP).absolute()),
    )  # fmt: skip
