"""Carry out what was decided. Made by `make queries` from sql/queries/scaling/run.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

RECORD = text(
    """WITH cooled AS (
    DELETE FROM hot_key k
    WHERE k.stream_id = :stream_id
      AND k.key_position <> ALL (CAST(:positions AS double precision[]))
      AND NOT EXISTS (
        SELECT FROM unnest(CAST(:lows AS double precision[]),
            CAST(:highs AS double precision[])) AS y (low, high)
        WHERE y.low <= k.key_position AND k.key_position < y.high)
), hot AS (
    INSERT INTO hot_key (stream_id, key_position, routing_key, share, rate, since, seen_at)
    SELECT :stream_id, k.position, k.key, k.share, k.rate, n.now, n.now
    FROM unnest(CAST(:positions AS double precision[]), CAST(:keys AS text[]),
        CAST(:shares AS double precision[]), CAST(:rates AS double precision[]))
        AS k (position, key, share, rate)
    CROSS JOIN (SELECT clock_timestamp() AS now) n
    ON CONFLICT (stream_id, key_position) DO UPDATE SET routing_key = excluded.routing_key,
        share = excluded.share, rate = excluded.rate, seen_at = excluded.seen_at
)
INSERT INTO scale_decision (stream_id, stream_name, decided_at, epoch, action, rule, reason,
    policy, commit_interval, loads, changes)
SELECT :stream_id, :stream, clock_timestamp(), :epoch, :action, :rule, :reason, :policy,
    :interval, CAST(:loads AS jsonb), CAST(:changes AS jsonb)
WHERE :action <> 'none'"""
)


def record(
    connection: Connection,
    *,
    stream_id: int,
    positions: Sequence[float],
    lows: Sequence[float],
    highs: Sequence[float],
    keys: Sequence[str],
    shares: Sequence[float],
    rates: Sequence[float],
    stream: str,
    epoch: int,
    action: str,
    rule: str,
    reason: str,
    policy: str,
    interval: int | None,
    loads: str,
    changes: str,
) -> None:
    """Record a decision to change segments, and the hot keys that were found; forget all others but those of segments that are too young to say."""
    result = connection.execute(
        RECORD,
        {
            "stream_id": stream_id,
            "positions": list(positions),
            "lows": list(lows),
            "highs": list(highs),
            "keys": list(keys),
            "shares": list(shares),
            "rates": list(rates),
            "stream": stream,
            "epoch": epoch,
            "action": action,
            "rule": rule,
            "reason": reason,
            "policy": policy,
            "interval": interval,
            "loads": loads,
            "changes": changes,
        },
    )
    result.close()
