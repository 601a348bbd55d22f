"""Let versions of adjunct stores expire: their files become garbage."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import Connection, text

from weir.adjunct.stores import lock_store
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.model.adjunct_expiry import Kept, expire
from weir.model.clock import SECOND

# Stores of which a version was superseded long enough ago, or has changes that are old enough.
_DUE = text(
    """SELECT a.store_id, a.name FROM adjunct_store a JOIN adjunct_version v USING (store_id)
    WHERE v.state = 'published' AND v.superseded_at <= :before
      AND v.superseded_at + a.keep_versions * interval '1 second' <= clock_timestamp()
    UNION
    SELECT a.store_id, a.name FROM adjunct_store a JOIN adjunct_version v USING (store_id)
    WHERE v.history_from IS NOT NULL AND (a.history IS NULL
          OR v.clock <= time_clock(clock_timestamp()) - a.history * 1000000)
    ORDER BY 1"""
)
# Whether a version may be due. `before` is known before the next statement is planned: few of the
# versions that are kept were superseded before it.
_FIRST = text(
    """SELECT n.before, EXISTS (SELECT FROM adjunct_version WHERE history_from IS NOT NULL)
        OR (SELECT min(superseded_at) FROM adjunct_version
            WHERE state = 'published' AND superseded_at IS NOT NULL) <= n.before AS due
    FROM (SELECT clock_timestamp() - min(keep_versions) * interval '1 second' AS before
          FROM adjunct_store) n"""
)
_VERSIONS = text(
    """SELECT version, definition || '/' || coalesce(code, '') AS line, clock,
        time_clock(superseded_at) AS superseded, state = 'published' AS published, history_from
    FROM adjunct_version
    WHERE store_id = :a AND (state = 'published' OR state = 'expired' AND history_from IS NOT NULL)
    ORDER BY version"""
)
_PINS = text(
    """SELECT p.version, p.since, v.definition || '/' || coalesce(v.code, '') AS line
    FROM adjunct_pin p JOIN reader_batch b USING (group_id, batch_id)
    JOIN adjunct_version v ON v.store_id = p.store_id AND v.version = p.version
    WHERE p.store_id = :a AND b.state = 'open'"""
)
_EXPIRE = text(
    """WITH unlisted AS (
        DELETE FROM adjunct_version_file WHERE store_id = :a AND version = ANY(:tables)
        RETURNING path
    ), freed AS (
        DELETE FROM adjunct_file f WHERE f.store_id = :a
          AND (f.kind = 'history' AND f.version = ANY(:histories)
               OR f.kind = 'table' AND f.path IN (SELECT path FROM unlisted)
                  AND NOT EXISTS (
                      SELECT FROM adjunct_version_file o
                      WHERE o.store_id = :a AND o.path = f.path AND o.version <> ALL(:tables)))
        RETURNING path, bytes
    ), garbage AS (
        INSERT INTO garbage (root, path, stream_id, reason, bytes)
        SELECT '', path, NULL, 'expired', bytes FROM freed ON CONFLICT (root, path) DO NOTHING
    ), without_history AS (
        UPDATE adjunct_version SET history_from = NULL
        WHERE store_id = :a AND version = ANY(:histories) AND version <> ALL(:tables)
    )
    UPDATE adjunct_version SET state = 'expired', ended_at = clock_timestamp(),
        history_from = CASE WHEN version <> ALL(:histories) THEN history_from END
    WHERE store_id = :a AND version = ANY(:tables)"""
)


def expire_versions(database: Database) -> list[dict[str, Any]]:
    """Let the versions of all stores expire that are older than their stores keep them, except the
    newest, those that open batches are read with, and those that a history begins with.

    Returns for each store `adjunct_store`, and `expired` (the numbers of the versions) or `error`:
    a store that fails does not stop the others.
    """
    due = database.transaction(_due)
    reports: list[dict[str, Any]] = []
    for store_id, name in due:
        work = partial(commit_once, database, partial(_expire, store_id=store_id))
        done, error = database.one_of_many(f"adjunct store {name}", work)
        if error:
            reports.append({"adjunct_store": name, "error": error})
        elif done:
            reports.append({"adjunct_store": name, "expired": done})
    return reports


def _due(connection: Connection) -> Sequence[Any]:
    """Return the stores of which a version may have to expire."""
    first = connection.execute(_FIRST).one()
    return connection.execute(_DUE, {"before": first.before}).all() if first.due else ()


def _expire(connection: Connection, store_id: int) -> list[int]:
    """Let versions of one store expire; return them."""
    lock_store(connection, store_id)
    settings = connection.execute(
        text(
            """SELECT keep_versions, history, time_clock(clock_timestamp()) AS now
            FROM adjunct_store WHERE store_id = :a"""
        ),
        {"a": store_id},
    ).one()
    versions = [Kept(**row) for row in connection.execute(_VERSIONS, {"a": store_id}).mappings()]
    pins: Sequence[Any] = connection.execute(_PINS, {"a": store_id}).all()
    found = expire(
        versions,
        now=settings.now,
        keep=settings.keep_versions * SECOND,
        history=None if settings.history is None else settings.history * SECOND,
        pinned=[pin.version for pin in pins],
        asked=[(pin.line, pin.since) for pin in pins if pin.since is not None],
    )
    if found.tables or found.histories:
        connection.execute(
            _EXPIRE,
            {"a": store_id, "tables": sorted(found.tables), "histories": sorted(found.histories)},
        )
    return sorted(found.tables)


def prune_versions(database: Database, older_than: float) -> int:
    """Delete the rows of versions that expired, or were abandoned, more than so many seconds ago,
    and that no batch names; return how many."""
    return commit_once(
        database,
        lambda c: (
            c.execute(
                text(
                    """DELETE FROM adjunct_version v
                    WHERE v.state IN ('expired', 'abandoned') AND v.history_from IS NULL
                      AND v.ended_at < clock_timestamp() - :age * interval '1 second'
                      AND NOT EXISTS (SELECT FROM adjunct_pin p
                                      WHERE p.store_id = v.store_id AND p.version = v.version)"""
                ),
                {"age": older_than},
            ).rowcount
        ),
    )
