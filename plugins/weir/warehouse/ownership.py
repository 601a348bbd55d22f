"""Check whether a warehouse belongs to this database, and whether that was restored from a backup.

The warehouse has an ownership marker: a file with the id of its installation, and how often the
warehouse was swept. The database has both, too, and remembers where it ran (its incarnation). See
docs/decisions/0016.
"""

import uuid

from pyarrow import fs
from sqlalchemy import text

from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.warehouse.filesystem import filesystem

MARK = "_weir_installation"


SKIPPED = 1_000_000  # how far beyond what is known a restored database goes on


def claim(
    root: str,
    installation_id: str,
    new: bool,
    tide: int = 0,
    moved: bool = False,
    seen: tuple[str, int] | None = None,
) -> None:
    """Check that the warehouse carries the installation's id; a `new` installation writes it.

    `tide`: how often this database has swept (see `mark`); `moved`: whether it is where it was;
    `seen`: what `read_mark` returned before the database was asked for these (None: read it now).
    Raises InvariantViolation when the warehouse carries another id, or none although something was
    committed: it is another database's, or the folder that should be mounted there is not. Also
    when it was swept more often than the database knows: then the database was restored from a
    backup; and when the database `moved`: then it may have been.
    """
    found, swept = seen or read_mark(root)
    if not found and new and not moved:
        mark(root, installation_id, tide)
        return
    if found != installation_id and not (moved and new and not found):
        belongs = f"belongs to installation {found}" if found else f"has no file {MARK}"
        raise InvariantViolation(
            "warehouse_not_owned",
            f"the warehouse {root} {belongs}, but this database is installation {installation_id}: "
            "check the settings warehouse and database, and its mount; nothing was touched.",
        )
    if swept > tide:
        raise InvariantViolation(
            "database_restored",
            f"this database is older than its warehouse {root} (swept {tide} times here, {swept} "
            "times there): it was restored from a backup; run weir_recover before anything else. "
            "Nothing was touched.",
        )
    if moved:
        raise InvariantViolation(
            "incarnation_changed",
            "this database was restored from a backup, moved, or taken over by a standby since it "
            f"last fitted its warehouse {root}, and may have forgotten what was committed there; "
            "run weir_recover before anything else. Nothing was touched.",
        )


def check_unused(root: str, folder: str) -> None:
    """Check that the folder of an attempt that begins to write does not exist.

    Raises InvariantViolation if it does: a database that knew more than this one has given out its
    number before. The marker then makes all other operations refuse until weir_recover has run.
    """
    system, base = filesystem(root)
    if system.get_file_info(f"{base}/{folder}".rstrip("/")).type == fs.FileType.NotFound:
        return
    installation_id, swept = read_mark(root)
    mark(root, installation_id, swept + SKIPPED)
    raise InvariantViolation(
        "unknown_files_found",
        f"files lie below {folder} of the warehouse {root} already, although nothing was written "
        "there by this database: it was restored from a backup; run weir_recover before anything "
        "else. Nothing was touched.",
    )


def mark(root: str, installation_id: str, tide: int) -> None:
    """Write whose the warehouse is, and how often it was swept; of the same installation never less
    than is there, as of two sweeps at once the slower one has the smaller number, and an alarm of
    `check_unused` stays."""
    files, base = filesystem(root)
    files.create_dir(base, recursive=True)
    path = f"{base}/{MARK}"
    written = f"{path}.{uuid.uuid4().hex}"  # whole or not at all: a kill leaves no empty mark
    with files.open_output_stream(written) as out:
        out.write(f"{installation_id}\n{tide}\n".encode())
    # No file system compares and renames in one step: what somebody writes between these two calls
    # is lost. Then a backup that is older than that sweep is known by the next one.
    found, swept = read_mark(root)
    if found == installation_id and swept > tide:
        files.delete_file(written)
    else:
        files.move(written, path)


def read_mark(root: str) -> tuple[str, int]:
    """The installation whose the warehouse is, and how often it was swept; empty without a mark."""
    files, base = filesystem(root)
    path = f"{base}/{MARK}"
    if files.get_file_info(path).type != fs.FileType.File:
        return "", 0
    with files.open_input_stream(path) as stream:
        found, _, tide = stream.read().decode().strip().partition("\n")
    return found.strip(), int(tide.strip() or 0)


def installation(database: Database) -> tuple[str, bool, int, bool]:
    """This database's identity, whether nothing has been committed in it yet, how often it has
    swept its warehouse, and whether it has been restored, moved or taken over since it was
    migrated or last recovered."""
    row = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT installation_id, NOT EXISTS (
                    SELECT FROM transaction WHERE state = 'committed') AS new, tide,
                    incarnation <> incarnation() AS moved
                FROM installation"""
            )
        ).one()
    )
    return str(row.installation_id), row.new, row.tide, row.moved


def check_warehouse_ownership(database: Database, warehouse: str) -> str:
    """Check that the warehouse belongs to this database, and that the database was not restored;
    return the installation's id. The first installation to use a warehouse marks it as its own.

    Raises InvariantViolation if the warehouse carries another id, or none although something was
    committed: it belongs to another database, or its folder is not mounted. Also if it was swept
    more often than the database knows (the database was restored from a backup), or if the database
    is not where it was (it may have been).
    """
    # The mark first: a sweep counts itself in the database before it does in the warehouse, so of
    # a sweep between the two the database knows, and the mark read here does not.
    seen, known = read_mark(warehouse), installation(database)
    if not seen[0] and not known[1]:  # the first append of all may have come between the two
        seen, known = read_mark(warehouse), installation(database)
    claim(warehouse, *known, seen=seen)
    return known[0]
