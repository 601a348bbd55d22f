"""Check whether a warehouse belongs to this database, and whether that was restored from a backup.

The warehouse has a marker with the id of its installation, and how often the warehouse was swept.
The database has both, too, and remembers where it ran (its incarnation). A move or a failover
changes that, too, although nothing may be missing: from inside nobody can tell, so a person runs
`weir_recover` once.
"""

from typing import NamedTuple

from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.front_ends import do
from weir.queries.controller import ownership as sql
from weir.warehouse.marker import (
    MARKER,
    RECOVERY_GAP,
    Marker,
    location,
    read_marker,
    write_marker,
)


class Installation(NamedTuple):
    """What the database records of itself, to compare with a marker."""

    installation_id: str
    new: bool  # nothing has been committed in it yet
    sweep_count: int = 0
    incarnation_changed: bool = False  # restored, moved or taken over since it was last recovered
    unplaced: bool = False  # it does not say where the warehouse is, and this login may note that

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
    if known.unplaced:
        database.transaction(lambda c: sql.place(c, place=location(warehouse)))
    return known.installation_id


def check_marker(warehouse: str, known: Installation, marker: Marker) -> None:
    """Check that the marker fits what the database records of itself; write one if there is none.

    Raises InvariantViolation like `check_owner` and `check_location`, and if the database was, or
    may have been, restored from a backup.
    """
    check_owner(warehouse, known, marker)
    if marker.sweep_count > known.sweep_count:
        raise InvariantViolation(
            "database_restored",
            f"this database was restored from a backup: it has swept its warehouse {warehouse} "
            f"{known.sweep_count} times, but the warehouse was swept {marker.sweep_count} times; "
            f"first {do('recover')} (nothing was changed).",
        )
    if known.incarnation_changed:
        raise InvariantViolation(
            "database_restored",
            "this database was restored from a backup, moved, or replaced by a standby since it "
            f"last used its warehouse {warehouse}, so it may not know everything that was "
            f"committed there; first {do('recover')} (nothing was changed).",
        )
    check_location(warehouse, known, marker)
    if not marker.installation_id:
        write_marker(warehouse, Marker(known.installation_id, known.sweep_count))


def check_location(warehouse: str, known: Installation, marker: Marker) -> None:
    """Check that a warehouse is where its marker says, and not a copy. Raises InvariantViolation
    if it is elsewhere, or if it was left behind when another place was accepted."""
    accept = do("recover", unknown_files="keep")
    if not marker.is_at(warehouse):
        raise InvariantViolation(
            "warehouse_elsewhere",
            f"the warehouse {location(warehouse)} is a copy of the one at "
            f"{' and '.join(marker.locations)}, or that one, moved or under a second name: if it "
            "was moved here, or copied together with its database as an installation of its own, "
            f"{accept}, and the old place is refused; if it is a second name of the same folder, "
            f"such as another mount, {do('recover', unknown_files='keep', second_name=True)}; "
            "otherwise correct the setting warehouse (nothing was changed).",
        )
    if known.sweep_count - marker.sweep_count >= RECOVERY_GAP:
        raise InvariantViolation(
            "warehouse_elsewhere",
            f"the warehouse {location(warehouse)} was left behind: this database's goes on "
            "elsewhere since a recovery; correct the setting warehouse, or if it was moved back "
            f"here, {accept} (nothing was changed).",
        )


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


def read_installation(database: Database) -> Installation:
    """Return what the database records of itself."""
    row: sql.Known = database.statement(sql.KNOWN, {})
    return Installation(str(row.installation_id), row.new, row.sweep_count, row.moved, row.unplaced)
