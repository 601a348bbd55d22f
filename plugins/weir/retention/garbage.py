"""Sweep garbage: delete the files that the database records as garbage, after the grace period."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.annex.verification.footers import Look, look_here
from weir.annex.verification.kept import JUDGED, forget_kept, keep
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.retention import garbage as sql
from weir.warehouse.file_deletion import Delete, delete_here
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER, Marker, delete_leftovers, write_marker

AT_ONCE = 200_000  # files deleted between two statements
SWEPT = "swept"  # the reason of a folder that was deleted, and will be once more


def sweep(
    database: Database,
    warehouse: str,
    grace_period: float,
    delete: Delete | None = None,
    *,
    look: Look = look_here,
    again_after: float = 0.0,
    compacted_grace: float = 0.0,
) -> dict[str, Any]:
    """Delete the garbage that is older than the grace period (seconds), that no open batch may
    need, and that no snapshot of a published table names.

    A batch stops protecting files `grace_period` seconds after its reader's lease expired: the
    reader that takes it over plans it again without the truncated events (docs/decisions/0014).
    A folder belongs to one writer: it is deleted once more `again_after` seconds later, with what a
    writer that was frozen has written there since; 0: never.
    Files whose events a compaction has put into others are kept `compacted_grace` seconds, if that
    is longer, because a database that is restored from a backup knows no others. Those whose events
    were erased go at once; if a snapshot names them that nobody could replace, after the grace
    period all the same.
    `delete`: how to delete files; by default with a few threads of this process. `look`: how to
    look at their footers; likewise.

    What is not what was recorded of it is kept, and so is what a stream still needs: until a person
    lets it go, which `weir.damage` asks for (`weir verify --repair`). What was erased goes anyway.

    Returns the number of deleted files, their bytes, how many were kept, and a sentence for each
    file that was kept, or could not be deleted and is left for the next sweep. A row is deleted
    after its file, so the next sweep completes a killed one. Raises InvariantViolation if the
    warehouse belongs to another database, or if this database was restored, moved or taken over
    since it was last recovered.
    """
    installation_id = check_warehouse_ownership(database, warehouse)
    # From now on the marker shows that a backup from before this sweep is older than the warehouse.
    write_marker(warehouse, Marker(installation_id, commit_once(database, sql.count_sweep)))
    delete_leftovers(*filesystem(warehouse), MARKER)
    files = bytes_ = kept = 0
    failed: list[str] = []
    last = ("", "")
    graces = {
        "grace": grace_period, "again": again_after,
        "compacted": max(grace_period, compacted_grace),
    }  # fmt: skip
    while True:
        after = last
        every = database.transaction(lambda c, a=after: _sweepable(c, graces, a))  # type: ignore[misc]  # the loop's own
        rows, not_garbage, unopened = keep(database, warehouse, every, look)
        failed += not_garbage + unopened
        kept += len(not_garbage)
        found = [(row.root or warehouse, row.path) for row in rows]
        failures = (delete or delete_here)(found) if found else {}
        failed += [f"{'/'.join(found[i])} can't be deleted: {failures[i]}" for i in failures]
        gone = [row for i, row in enumerate(rows) if i not in failures]
        if gone:
            database.transaction(lambda c, g=gone: _delete_rows(c, g, again_after))  # type: ignore[misc]  # the loop's own
        files += sum(row.reason != SWEPT for row in gone)
        bytes_ += sum(row.bytes for row in gone)
        if len(every) < AT_ONCE:
            return {"deleted": files, "bytes": bytes_, "kept": kept, "failed": failed}
        last = (every[-1].root, every[-1].path)


def _sweepable(
    connection: Connection, graces: dict[str, float], after: tuple[str, str]
) -> Sequence[Any]:
    return connection.execute(
        text(
            f"""WITH due AS MATERIALIZED (
            SELECT g.root, g.path, g.bytes, g.reason, g.stream_id, g.rows, g.end_hash
            FROM garbage g
            LEFT JOIN (
                SELECT r.stream_id, min(r.opened_at) AS since
                FROM batches_protecting_files(:grace) r
                GROUP BY r.stream_id) reading USING (stream_id)
            WHERE (g.root, g.path) > (:root, :path)
              AND g.garbage_since + CASE g.reason WHEN :swept THEN :again
                  WHEN 'compacted' THEN :compacted WHEN 'erased' THEN 0 ELSE :grace END
                  * interval '1 second'
                  <= clock_timestamp()
              AND (reading.since IS NULL OR reading.since > g.garbage_since)
              AND (g.root <> '' OR NOT EXISTS (  -- but not for ever, if it has erased events
                  SELECT FROM published_file p
                  WHERE p.stream_id = g.stream_id AND p.path = g.path)
                  OR g.reason = 'erased'
                  AND g.garbage_since + :grace * interval '1 second' <= clock_timestamp())
              AND (g.root <> '' OR g.reason = 'erased' OR NOT EXISTS (
                  SELECT FROM found_damage d WHERE d.path = g.path AND d.kind = 'garbage'))
            ORDER BY g.root, g.path LIMIT :most
            ), {JUDGED}
            SELECT * FROM judged ORDER BY root, path"""  # noqa: S608 - a constant
        ),
        {**graces, "swept": SWEPT, "most": AT_ONCE, "root": after[0], "path": after[1]},
    ).all()


def _delete_rows(connection: Connection, gone: Sequence[Any], again_after: float) -> None:
    """Delete the rows of what was deleted, but for folders that are to be deleted once more."""
    forget_kept(connection, [row.path for row in gone if not row.root])
    sql.forget(
        connection,
        again=again_after,
        roots=[row.root for row in gone],
        paths=[row.path for row in gone],
        reasons=[row.reason for row in gone],
    )
