"""Sweep garbage: delete the files that the database records as garbage, after the grace period."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypedDict

from sqlalchemy import Connection

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.installation.opened import StartSpark
from weir.queries.retention import garbage as sql
from weir.queries.retention.garbage import Sweepable
from weir.seams import hung
from weir.warehouse.file_deletion import Delete, delete_here
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER, Marker, delete_leftovers, write_marker
from weir.warehouse.paths import lies_below

AT_ONCE = 200_000  # files deleted between two statements
SWEPT = "swept"  # the reason of a folder that was deleted, and will be once more

NEEDED = "it is no garbage: a stream or an adjunct store needs it"
FOREIGN = (
    "it is not below output_roots, as in a copy of another installation; add its root if it is not"
)


class Kept(NamedTuple):
    """The rows of garbage that may be deleted, and sentences about the others."""

    rows: list[Sweepable]
    kept: list[str]
    unopened: list[str]


@dataclass(frozen=True)
class Guard:
    """A seam: what an annex has to say before garbage is deleted.

    `keep`: returns which rows may be deleted. `forget`: gets the paths of what was deleted, in the
    transaction that deletes the rows. What must not even be looked at, its SQL adds to the view
    held_garbage.
    """

    keep: Callable[[Database, str, Sequence[Sweepable], StartSpark | None], Kept]
    forget: Callable[[Connection, Sequence[str]], None]


class Swept(TypedDict):
    """How many files were deleted, their bytes, how many were kept, and a sentence for each that
    was kept, or could not be deleted and is left for the next sweep."""

    deleted: int
    bytes: int
    kept: int
    failed: list[str]


def sweep(
    database: Database,
    warehouse: str,
    grace_period: float,
    delete: Delete | None = None,
    *,
    output_roots: Sequence[str],
    start_spark: StartSpark | None = None,
    again_after: float = 0.0,
    compacted_grace: float = 0.0,
) -> Swept:
    """Delete the garbage that is older than the grace period (seconds), that no open batch may
    need, and that no annex holds.

    A batch stops protecting files `grace_period` seconds after its reader's lease expired: the
    reader that takes it over plans it again without the truncated events. Else a reader
    that was killed and has no successor would keep all garbage of its streams for ever.
    A folder belongs to one writer: it is deleted once more `again_after` seconds later, with what a
    writer that was frozen has written there since; 0: never.
    Files whose events a compaction has put into others are kept `compacted_grace` seconds, if that
    is longer, because a database that is restored from a backup knows no others. Those whose events
    were erased go at once; if a snapshot names them that nobody could replace, after the grace
    period all the same.
    `delete`: how to delete files; by default with a few threads of this process. `start_spark`: in
    whose tasks many files may be looked at before; None: in this process.

    What an annex keeps is kept, and so is what a stream still needs, and a folder of an output that
    does not lie below `output_roots`: in a copy of an installation it is the original's.

    A row is deleted after its file, so the next sweep completes a killed one. Raises
    InvariantViolation if the warehouse belongs to another database, or if this database was
    restored, moved or taken over since it was last recovered.
    """
    installation_id = check_warehouse_ownership(database, warehouse)
    # From now on the marker shows that a backup from before this sweep is older than the warehouse.
    write_marker(warehouse, Marker(installation_id, commit_once(database, sql.count_sweep)))
    delete_leftovers(*filesystem(warehouse), MARKER)
    files = bytes_ = kept = 0
    failed: list[str] = []
    last = ("", "")
    while True:
        look = partial(
            sql.sweepable, grace=grace_period, again=again_after,
            compacted=compacted_grace, root=last[0], path=last[1], most=AT_ONCE,
        )  # fmt: skip
        every = database.transaction(look)
        rows, not_garbage, unopened = _kept(database, warehouse, every, start_spark)
        failed += not_garbage + unopened
        kept += len(not_garbage)
        ours = [row for row in rows if not row.root or lies_below(row.root, row.path, output_roots)]
        theirs = {(row.root, row.path) for row in rows}.difference(
            (row.root, row.path) for row in ours
        )
        failed += [f"{'/'.join(one)} is kept ({FOREIGN})" for one in sorted(theirs)]
        kept += len(theirs)
        found = [(row.root or warehouse, row.path) for row in ours]
        failures = (delete or delete_here)(found) if found else {}
        failed += [f"{'/'.join(found[i])} can't be deleted: {failures[i]}" for i in failures]
        gone = [row for i, row in enumerate(ours) if i not in failures]
        if gone:
            database.transaction(partial(_delete_rows, gone=gone, again_after=again_after))
        files += sum(row.reason != SWEPT for row in gone)
        bytes_ += sum(row.bytes for row in gone)
        if len(every) < AT_ONCE:
            return {"deleted": files, "bytes": bytes_, "kept": kept, "failed": failed}
        last = (every[-1].root, every[-1].path)


def _kept(
    database: Database, warehouse: str, rows: Sequence[Sweepable], start_spark: StartSpark | None
) -> Kept:
    """Return which rows no annex keeps, and nothing needs."""
    kept, unopened = list[str](), list[str]()
    left = list(rows)
    for guard in hung(Guard):
        left, held, away = guard.keep(database, warehouse, left, start_spark)
        kept += held
        unopened += away
    kept += [f"{row.path} is kept ({NEEDED})" for row in left if row.live]
    return Kept([row for row in left if not row.live], kept, unopened)


def _delete_rows(connection: Connection, gone: Sequence[Sweepable], again_after: float) -> None:
    """Delete the rows of what was deleted, but for folders that are to be deleted once more.

    What each row says now does not count: another sweep at the same time may have changed it.
    """
    paths = [row.path for row in gone if not row.root]
    for guard in hung(Guard):
        guard.forget(connection, paths)
    sql.forget(
        connection,
        again=again_after,
        roots=[row.root for row in gone],
        paths=[row.path for row in gone],
        reasons=[row.reason for row in gone],
    )
