"""Sweep garbage. Made by `make queries` from sql/queries/retention/garbage.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

COUNT_SWEEP = text(
    """UPDATE installation SET sweep_count = sweep_count + 1 RETURNING sweep_count"""
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
        FORGET, {"again": again, "roots": roots, "paths": paths, "reasons": reasons}
    )
    result.close()
