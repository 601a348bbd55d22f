"""Check whether a warehouse belongs to this database, and whether that was restored from a backup.

The warehouse has an ownership marker: a file with the id of its installation, and how often the
warehouse was swept. The database has both, too, and remembers where it ran (its incarnation). See
docs/decisions/0016.
"""

import uuid
from typing import NamedTuple

from pyarrow import fs
from sqlalchemy import text

from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.warehouse.filesystem import filesystem

MARKER = "_weir_installation"  # the name of the file
RECOVERY_GAP = 1_000_000  # how far above all numbers that it finds a recovered database continues


class Marker(NamedTuple):
    """The content of a warehouse's ownership marker; empty if there is none."""

    installation_id: str = ""
    sweep_count: int = 0


class Installation(NamedTuple):
    """What the database records of itself, to compare with a marker."""

    installation_id: str
    new: bool  # nothing has been committed in it yet
    sweep_count: int = 0
    incarnation_changed: bool = False  # restored, moved or taken over since it was last recovered

    def owns(self, marker: Marker) -> bool:
        """Return whether a warehouse is this installation's, or has no owner and may get it."""
        unmarked = not marker.installation_id
        return marker.installation_id == self.installation_id or (self.new and unmarked)

    def may_be_restored(self, marker: Marker) -> bool:
        """Return whether the database may have forgotten what was done to its warehouse."""
        return marker.sweep_count > self.sweep_count or self.incarnation_changed


def check_warehouse_ownership(database: Database, warehouse: str) -> str:
    """Check that the warehouse belongs to this database, and that the database was not restored;
    return the installation's id. The first installation to use a warehouse marks it as its own.

    Raises InvariantViolation like `check_marker`.
    """
    # The marker first: a sweep increases the count in the database before it writes the marker. So
    # after a sweep in between, the database has the larger count, which is allowed.
    marker, known = read_marker(warehouse), read_installation(database)
    if not known.owns(marker):  # the very first append may have come in between
        marker, known = read_marker(warehouse), read_installation(database)
    check_marker(warehouse, known, marker)
    return known.installation_id


def check_marker(warehouse: str, known: Installation, marker: Marker) -> None:
    """Check that the marker fits what the database records of itself; write one if there is none.

    Raises InvariantViolation like `check_owner`, and if the database was, or may have been,
    restored from a backup.
    """
    check_owner(warehouse, known, marker)
    if marker.sweep_count > known.sweep_count:
        raise InvariantViolation(
            "database_restored",
            f"this database was restored from a backup: it has swept its warehouse {warehouse} "
            f"{known.sweep_count} times, but the warehouse was swept {marker.sweep_count} times; "
            "run weir_recover first (nothing was changed).",
        )
    if known.incarnation_changed:
        raise InvariantViolation(
            "incarnation_changed",
            "this database was restored from a backup, moved, or replaced by a standby since it "
            f"last used its warehouse {warehouse}, so it may not know everything that was "
            "committed there; run weir_recover first (nothing was changed).",
        )
    if not marker.installation_id:
        write_marker(warehouse, Marker(known.installation_id, known.sweep_count))


def check_owner(warehouse: str, known: Installation, marker: Marker) -> None:
    """Check that the warehouse belongs to the installation of this database.

    Raises InvariantViolation if the marker is another installation's, or if there is none although
    something was committed (then the warehouse's folder is not mounted).
    """
    if not known.owns(marker):
        found = marker.installation_id
        belongs = f"belongs to installation {found}" if found else f"has no file {MARKER}"
        raise InvariantViolation(
            "warehouse_not_owned",
            f"the warehouse {warehouse} {belongs}, but this database belongs to installation "
            f"{known.installation_id}; check the settings warehouse and database, and that the "
            "warehouse is mounted (nothing was changed).",
        )


def check_unused(root: str, folder: str) -> None:
    """Check that the folder of an attempt that begins to write does not exist.

    Raises InvariantViolation if it does: a database that knew more than this one has given out its
    number before. The marker then makes all other operations refuse until weir_recover has run.
    """
    system, base = filesystem(root)
    if system.get_file_info(f"{base}/{folder}".rstrip("/")).type == fs.FileType.NotFound:
        return
    marker = read_marker(root)
    write_marker(root, marker._replace(sweep_count=marker.sweep_count + RECOVERY_GAP))
    raise InvariantViolation(
        "unknown_files_found",
        f"the warehouse {root} already has files in {folder}, although this database never wrote "
        "there, so the database was restored from a backup; run weir_recover first (nothing was "
        "changed).",
    )


def write_marker(root: str, marker: Marker) -> None:
    """Write the marker of a warehouse, unless the same installation's marker there has a larger
    sweep count.

    Of two sweeps at the same time the slower one has the smaller count. An alarm of `check_unused`
    must stay.
    """
    files, base = filesystem(root)
    files.create_dir(base, recursive=True)
    path = f"{base}/{MARKER}"
    written = f"{path}.{uuid.uuid4().hex}"  # renamed when whole: a kill leaves no empty marker
    with files.open_output_stream(written) as out:
        out.write(f"{marker.installation_id}\n{marker.sweep_count}\n".encode())
    # No file system compares and renames in one step: a marker that another process writes between
    # these two calls is lost. Then only the next sweep shows that a backup is older.
    found = read_marker(root)
    same = found.installation_id == marker.installation_id
    if same and found.sweep_count > marker.sweep_count:
        files.delete_file(written)
    else:
        files.move(written, path)


def read_marker(root: str) -> Marker:
    """Return the marker of a warehouse; an empty one if there is none."""
    files, base = filesystem(root)
    path = f"{base}/{MARKER}"
    if files.get_file_info(path).type != fs.FileType.File:
        return Marker()
    with files.open_input_stream(path) as stream:
        found, _, count = stream.read().decode().strip().partition("\n")
    return Marker(found.strip(), int(count.strip() or 0))


def read_installation(database: Database) -> Installation:
    """Return what the database records of itself."""
    row = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT installation_id, NOT EXISTS (
                    SELECT FROM transaction WHERE state = 'committed') AS new, sweep_count,
                    incarnation <> incarnation() AS moved
                FROM installation"""
            )
        ).one()
    )
    return Installation(str(row.installation_id), row.new, row.sweep_count, row.moved)
