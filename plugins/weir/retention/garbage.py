"""Sweep garbage: delete the files that the database records as garbage, after the grace period."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.installation.opened import StartSpark
from weir.queries.retention import garbage as sql
from weir.seams import hung
from weir.warehouse.file_deletion import Delete, delete_here
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER, Marker, delete_leftovers, write_marker

AT_ONCE = 200_000  # files deleted between two statements
SWEPT = "swept"  # the reason of a folder that was deleted, and will be once more

NEEDED = "it is no garbage: a stream or an adjunct store needs it"


class Kept(NamedTuple):
    """The rows of garbage that may be deleted, and sentences about the others."""

    rows: list[Any]
    kept: list[str]
    unopened: list[str]


@dataclass(frozen=True)
class Guard:
    """A seam: what an annex has to say before garbage is deleted.

    `keep`: returns which rows may be deleted. `forget`: gets the paths of what was deleted, in the
    transaction that deletes the rows. What must not even be looked at, its SQL adds to the view
    held_garbage.
    """

    keep: Callable[[Database, str, Sequence[Any], StartSpark | None], Kept]
    forget: Callable[[Connection, Sequence[str]], None]


def sweep(
    database: Database,
    warehouse: str,
    grace_period: float,
    delete: Delete | None = None,
    *,
    start_spark: StartSpark | None = None,
    again_after: float = 0.0,
    compacted_grace: float = 0.0,
) -> dict[str, Any]:
    """Delete the garbage that is older than the grace period (seconds), that no open batch may
    need, and that no annex holds.

    A batch stops protecting files `grace_period` seconds after its reader's lease expired: the
    reader that takes it over plans it again without the truncated events (docs/decisions/0014).
    A folder belongs to one writer: it is deleted once more `again_after` seconds later, with what a
    writer that was frozen has written there since; 0: never.
    Files whose events a compaction has put into others are kept `compacted_grace` seconds, if that
    is longer, because a database that is restored from a backup knows no others. Those whose events
    were erased go at once; if a snapshot names them that nobody could replace, after the grace
    period all the same.
    `delete`: how to delete files; by default with a few threads of this process. `start_spark`: in
    whose tasks many files may be looked at before; None: in this process.

    What an annex keeps is kept, and so is what a stream still needs.

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
        rows, not_garbage, unopened = _kept(database, warehouse, every, start_spark)
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


def _kept(
    database: Database, warehouse: str, rows: Sequence[Any], start_spark: StartSpark | None
) -> Kept:
    """Return which rows no annex keeps, and nothing needs."""
    kept, unopened = list[str](), list[str]()
    for guard in hung(Guard):
        rows, held, away = guard.keep(database, warehouse, rows, start_spark)
        kept += held
        unopened += away
    kept += [f"{row.path} is kept ({NEEDED})" for row in rows if row.live]
    return Kept([row for row in rows if not row.live], kept, unopened)


# What follows `WITH due AS (...)`, rows of garbage: `judged`, the same rows with whether they name
# what is needed, or a folder with it. The folder of a file has the number of the transaction that
# wrote it, which an index has, or of a compaction: then all files of the stream are looked at.
JUDGED = r"""named AS MATERIALIZED (
        SELECT s.stream_name, n.number, EXISTS (
            SELECT FROM transaction t
            WHERE t.stream_id = s.stream_id AND t.transaction_number = n.number) AS appended
        FROM (SELECT DISTINCT CAST(substring(path FROM '^(\d{1,18})/') AS bigint) AS stream_id,
                  CAST(substring(path FROM '^\d+/_weir_tx=(\d{1,18})/') AS bigint) AS number
              FROM due WHERE root = '' AND path ~ '^\d{1,18}/(_weir_tx=\d{1,18}/|$)') n
        JOIN stream s USING (stream_id)
    ), live AS MATERIALIZED (
        SELECT f.path FROM named n
        JOIN data_file f ON f.stream_name = n.stream_name AND f.transaction_number = n.number
        WHERE n.appended
        UNION ALL
        SELECT f.path FROM data_file f
        WHERE f.stream_name IN (SELECT n.stream_name FROM named n WHERE NOT n.appended)
        UNION ALL
        SELECT a.path FROM due d JOIN adjunct_file a ON a.path = d.path
          AND a.store_id = CAST(substring(d.path FROM '^_weir_adjunct=(\d{1,18})/') AS bigint)
    ), judged AS (
        SELECT d.*, d.root = '' AND (d.path IN (SELECT l.path FROM live l)
            OR d.path LIKE '%/' AND EXISTS (SELECT FROM live l WHERE starts_with(l.path, d.path)))
            AS live
        FROM due d
    )"""


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
              AND (g.root <> '' OR NOT EXISTS (
                  SELECT FROM held_garbage h
                  WHERE h.stream_id = coalesce(g.stream_id, 0) AND h.path = g.path
                    AND (g.reason <> 'erased' OR h.erased_too
                         AND g.garbage_since + :grace * interval '1 second' > clock_timestamp())))
            ORDER BY g.root, g.path LIMIT :most
            ), {JUDGED}
            SELECT * FROM judged ORDER BY root, path"""  # noqa: S608 - a constant
        ),
        {**graces, "swept": SWEPT, "most": AT_ONCE, "root": after[0], "path": after[1]},
    ).all()


def _delete_rows(connection: Connection, gone: Sequence[Any], again_after: float) -> None:
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
