"""Sweep garbage. Made by `make queries` from sql/queries/retention/garbage.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

SWEEPABLE = text(
    """WITH due AS MATERIALIZED (
    SELECT g.root, g.path, g.bytes, g.reason, g.stream_id, g.rows, g.end_hash
    FROM garbage_due(:grace, :again, :compacted) g WHERE (g.root, g.path) > (:root, :path)
    ORDER BY g.root, g.path LIMIT :most
), named AS MATERIALIZED (
    SELECT s.stream_name, n.number, EXISTS (
        SELECT FROM transaction t
        WHERE t.stream_id = s.stream_id AND t.transaction_number = n.number) AS appended
    FROM (SELECT DISTINCT CAST(substring(path FROM '^(\\d{1,18})/') AS bigint) AS stream_id,
              CAST(substring(path FROM '^\\d+/_weir_tx=(\\d{1,18})/') AS bigint) AS number
          FROM due WHERE root = '' AND path ~ '^\\d{1,18}/(_weir_tx=\\d{1,18}/|$)') n
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
      AND a.store_id = CAST(substring(d.path FROM '^_weir_adjunct=(\\d{1,18})/') AS bigint)
), judged AS (
    SELECT d.*, d.root = '' AND (d.path IN (SELECT l.path FROM live l)
        OR d.path LIKE '%/' AND EXISTS (SELECT FROM live l WHERE starts_with(l.path, d.path)))
        AS live
    FROM due d
)
SELECT * FROM judged ORDER BY root, path"""
)


class Sweepable(NamedTuple):
    """A row of `sweepable`."""

    root: str
    path: str
    bytes: int
    reason: str
    stream_id: int | None
    rows: int | None
    end_hash: int | None
    live: bool


def sweepable(
    connection: Connection,
    *,
    grace: float,
    again: float,
    compacted: float,
    root: str,
    path: str,
    most: int,
) -> list[Sweepable]:
    """Return garbage that may be deleted by its time, after a path, and whether something needs it."""
    result = connection.execute(
        SWEEPABLE,
        {
            "grace": grace,
            "again": again,
            "compacted": compacted,
            "root": root,
            "path": path,
            "most": most,
        },
    )
    return [Sweepable._make(row) for row in result]


COUNT_SWEEP = text(
    """UPDATE installation SET sweep_count = sweep_count + 1, swept_at = clock_timestamp() RETURNING sweep_count"""
)


def count_sweep(connection: Connection) -> int:
    """Count a sweep, and return how many there were."""
    result = connection.execute(COUNT_SWEEP)
    value: int = result.scalar_one()
    return value


FORGET = text(
    """WITH gone AS MATERIALIZED (
    SELECT d.root, d.path,
           CAST(:again AS float8) > 0 AND d.path LIKE '%/' AND d.reason <> 'swept' AS again
    FROM unnest(CAST(:roots AS text[]), CAST(:paths AS text[]),
                CAST(:reasons AS text[])) AS d (root, path, reason)
), kept AS (
    UPDATE garbage g SET reason = 'swept', garbage_since = clock_timestamp(), bytes = 0
    FROM gone d WHERE d.again AND g.root = d.root AND g.path = d.path
)
DELETE FROM garbage g USING gone d
WHERE NOT d.again AND g.root = d.root AND g.path = d.path"""
)


def forget(
    connection: Connection,
    *,
    again: float,
    roots: Sequence[str],
    paths: Sequence[str],
    reasons: Sequence[str],
) -> None:
    """Delete the rows of what was deleted, but for folders that are to be deleted once more, if `again` is more than 0. What each row says now does not count: another sweep at the same time may have changed it."""
    result = connection.execute(
        FORGET,
        {"again": again, "roots": list(roots), "paths": list(paths), "reasons": list(reasons)},
    )
    result.close()
