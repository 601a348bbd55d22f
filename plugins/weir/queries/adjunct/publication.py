"""Builds of versions, while they are held, and when they end. Made by `make queries` from sql/queries/adjunct/publication.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

RENEW = text(
    """UPDATE adjunct_version
SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE store_id = :store_id AND version = :version AND attempt = :attempt AND state = 'building'"""
)


def renew(
    connection: Connection, *, lease: float, store_id: int, version: int, attempt: int
) -> int:
    """Renew the lease of a build that is still held."""
    result = connection.execute(
        RENEW, {"lease": lease, "store_id": store_id, "version": version, "attempt": attempt}
    )
    return result.rowcount


STATE_OF = text(
    """SELECT state FROM adjunct_version WHERE store_id = :store_id AND version = :version"""
)


def state_of(connection: Connection, *, store_id: int, version: int) -> str:
    """Return the state of a version."""
    result = connection.execute(STATE_OF, {"store_id": store_id, "version": version})
    value: str = result.scalar_one()
    return value


PUBLISH = text(
    """WITH file AS (
    INSERT INTO adjunct_file (store_id, path, kind, version, low, high, row_count, bytes)
    SELECT :store_id, f.path, f.kind, :version, f.low, f.high, f.rows, f.bytes
    FROM unnest(CAST(:paths AS text[]), CAST(:kinds AS text[]), CAST(:lows AS bigint[]),
        CAST(:highs AS bigint[]), CAST(:counts AS bigint[]), CAST(:sizes AS bigint[]))
        AS f (path, kind, low, high, rows, bytes)
), part AS (
    INSERT INTO adjunct_version_file (store_id, version, path)
    SELECT :store_id, :version, p FROM unnest(CAST(:table AS text[])) p
), superseded AS (
    UPDATE adjunct_version SET superseded_at = clock_timestamp()
    WHERE store_id = :store_id AND version <> :version AND state = 'published' AND superseded_at IS NULL
), done AS (
    UPDATE adjunct_store SET error = NULL, failed_at = NULL WHERE store_id = :store_id
)
UPDATE adjunct_version SET state = 'published', lease_until = NULL,
    published_at = clock_timestamp(), fields = CAST(:fields AS jsonb), layout = :layout,
    row_count = :rows, bytes = :bytes, events = :events, upserts = :upserts,
    deletes = :deletes, null_keys = :null_keys, failed_rows = :failed_rows,
    history_from = :history_from
WHERE store_id = :store_id AND version = :version"""
)


def publish(
    connection: Connection,
    *,
    store_id: int,
    version: int,
    paths: Sequence[str],
    kinds: Sequence[str],
    lows: Sequence[int],
    highs: Sequence[int],
    counts: Sequence[int],
    sizes: Sequence[int],
    table: Sequence[str],
    fields: str,
    layout: str,
    rows: int,
    bytes: int,
    events: int,
    upserts: int,
    deletes: int,
    null_keys: int,
    failed_rows: int,
    history_from: int | None,
) -> None:
    """Publish a version. The constraint on files is checked at the end of a statement: it inserts all."""
    result = connection.execute(
        PUBLISH,
        {
            "store_id": store_id,
            "version": version,
            "paths": list(paths),
            "kinds": list(kinds),
            "lows": list(lows),
            "highs": list(highs),
            "counts": list(counts),
            "sizes": list(sizes),
            "table": list(table),
            "fields": fields,
            "layout": layout,
            "rows": rows,
            "bytes": bytes,
            "events": events,
            "upserts": upserts,
            "deletes": deletes,
            "null_keys": null_keys,
            "failed_rows": failed_rows,
            "history_from": history_from,
        },
    )
    result.close()


HELD = text(
    """SELECT EXISTS (
    SELECT FROM adjunct_version WHERE store_id = :store_id AND version = :version
    AND attempt = :attempt AND state IN ('building', 'published'))"""
)


def held(connection: Connection, *, store_id: int, version: int, attempt: int) -> bool:
    """Return whether an attempt still holds a version, or has published it."""
    result = connection.execute(
        HELD, {"store_id": store_id, "version": version, "attempt": attempt}
    )
    value: bool = result.scalar_one()
    return value


FAIL = text(
    """UPDATE adjunct_store SET error = :error, failed_at = clock_timestamp()
WHERE store_id = :store_id"""
)


def fail(connection: Connection, *, error: str, store_id: int) -> None:
    """Record why a build failed."""
    result = connection.execute(FAIL, {"error": error, "store_id": store_id})
    result.close()


LET_GO = text(
    """UPDATE adjunct_version SET lease_until = clock_timestamp(),
    silent_attempts = 0
WHERE store_id = :store_id AND version = :version AND attempt = :attempt
  AND state = 'building'"""
)


def let_go(connection: Connection, *, store_id: int, version: int, attempt: int) -> None:
    """Let the next builder continue at once."""
    result = connection.execute(
        LET_GO, {"store_id": store_id, "version": version, "attempt": attempt}
    )
    result.close()
