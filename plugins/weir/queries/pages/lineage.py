"""Lineage as a graph. Made by `make queries` from sql/queries/pages/lineage.sql."""

from collections.abc import Sequence

from pydantic import BaseModel
from sqlalchemy import Connection, text

DOWN = text(
    """SELECT 'stream' AS kind, s.stream_name AS name,
    CASE WHEN a.store_id IS NULL THEN 'group' ELSE 'store' END AS next_kind, g.name AS next_name
FROM weir_internal.stream s JOIN weir_internal.reader_group_stream gs USING (stream_id)
JOIN weir_internal.reader_group g USING (group_id)
LEFT JOIN weir_internal.adjunct_store a ON a.group_id = g.group_id
WHERE s.stream_name = ANY(:streams) AND s.state <> 'deleted'
UNION ALL
SELECT 'group', p.name, w.kind, w.name
FROM unnest(CAST(:groups AS text[])) AS p (name)
CROSS JOIN LATERAL (
    SELECT DISTINCT o ->> 'kind' AS kind,
        coalesce(s.stream_name, o ->> 'root', o ->> 'output') AS name
    FROM (SELECT b.outputs FROM weir.batches b
          WHERE b.reader_group = p.name AND b.state = 'committed'
          ORDER BY b.committed_at DESC LIMIT 100) b
    CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
    LEFT JOIN weir_internal.stream s
        ON o ->> 'kind' = 'stream' AND s.stream_id = (o ->> 'stream_id')::bigint) w
WHERE w.name IS NOT NULL
UNION ALL
SELECT 'store', a.name, 'group', g.name
FROM weir_internal.adjunct_store a
CROSS JOIN LATERAL (
    SELECT DISTINCT n.group_id FROM (
        SELECT p.group_id FROM weir_internal.adjunct_pin p WHERE p.store_id = a.store_id
        ORDER BY p.version DESC LIMIT 100) n) p
JOIN weir_internal.reader_group g ON g.group_id = p.group_id
WHERE a.name = ANY(:stores)
ORDER BY 2, 3, 4 LIMIT 1000"""
)


class Link(BaseModel):
    """A row of `down`."""

    kind: str
    name: str
    next_kind: str
    next_name: str


def down(
    connection: Connection, *, streams: Sequence[str], groups: Sequence[str], stores: Sequence[str]
) -> list[Link]:
    """Return who reads streams, what groups write, who joins stores: from the settings, and the newest commits."""
    result = connection.execute(
        DOWN, {"streams": list(streams), "groups": list(groups), "stores": list(stores)}
    )
    return [Link(**row._mapping) for row in result]


UP = text(
    """SELECT 'stream' AS kind, p.name AS name, w.kind AS next_kind, w.name AS next_name
FROM unnest(CAST(:streams AS text[])) AS p (name)
CROSS JOIN LATERAL (
    SELECT DISTINCT CASE WHEN g.name IS NULL THEN 'writer' ELSE 'group' END AS kind,
        coalesce(g.name, regexp_replace(
            t.source, '\\A([^/]+)/[^/]+/([^/]+?)(/[0-9]+)?\\Z', '\\1 · \\2')) AS name
    FROM (SELECT t.source, CASE WHEN starts_with(t.writer_id, 'group ')
              AND t.batch_id ~ '\\A[0-9]{1,18}[.][0-9]' THEN split_part(t.batch_id, '.', 1)::bigint
          END AS group_id
          FROM weir.transactions t WHERE t.stream = p.name AND t.state = 'committed'
          ORDER BY t.clock DESC LIMIT 100) t
    LEFT JOIN weir_internal.reader_group g USING (group_id)) w
WHERE w.name <> ''
UNION ALL
SELECT 'group', g.name, 'stream', s.stream_name
FROM weir_internal.reader_group g JOIN weir_internal.reader_group_stream gs USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
WHERE g.name = ANY(:groups)
UNION ALL
SELECT 'group', g.name, 'store', a.name
FROM weir_internal.reader_group g
CROSS JOIN LATERAL (
    SELECT DISTINCT n.store_id FROM (
        SELECT p.store_id FROM weir_internal.adjunct_pin p WHERE p.group_id = g.group_id
        ORDER BY p.batch_id DESC LIMIT 100) n) p
JOIN weir_internal.adjunct_store a USING (store_id)
WHERE g.name = ANY(:groups)
UNION ALL
SELECT 'store', a.name, 'stream', s.stream_name
FROM weir_internal.adjunct_store a JOIN weir_internal.stream s USING (stream_id)
WHERE a.name = ANY(:stores)
ORDER BY 2, 3, 4 LIMIT 1000"""
)


def up(
    connection: Connection, *, streams: Sequence[str], groups: Sequence[str], stores: Sequence[str]
) -> list[Link]:
    """Return what streams, groups and stores are made of: from the settings, and the newest commits."""
    result = connection.execute(
        UP, {"streams": list(streams), "groups": list(groups), "stores": list(stores)}
    )
    return [Link(**row._mapping) for row in result]


THERE = text(
    """SELECT EXISTS (SELECT FROM weir_internal.stream
                           WHERE stream_name = :stream AND state <> 'deleted')
    OR EXISTS (SELECT FROM weir_internal.reader_group WHERE name = :group)
    OR EXISTS (SELECT FROM weir_internal.adjunct_store WHERE name = :store) AS there"""
)


def there(connection: Connection, *, stream: str, group: str, store: str) -> bool:
    """Return whether there is a stream, a group or a store of a name."""
    result = connection.execute(THERE, {"stream": stream, "group": group, "store": store})
    value: bool = result.scalar_one()
    return value


EXACT = text(
    """SELECT min(l.step) AS step, l.side, l.kind,
    CASE WHEN l.kind IN ('file', 'parquet') THEN regexp_replace(l.name, '/[^/]*\\Z', '')
         ELSE l.name END AS name,
    CASE WHEN l.reader_group IS NULL THEN 'writer' ELSE 'group' END AS by_kind,
    coalesce(l.reader_group, l.run) AS by_name,
    coalesce(sum(l.name_to - l.name_from), 0)::bigint AS events
FROM weir.lineage(CAST(:of AS text), CAST(:direction AS text), CAST(:depth AS integer), CAST(:segment AS text),
    CAST(:first AS bigint), CAST(:past AS bigint)) l
WHERE l.side IS NOT NULL
GROUP BY 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4 LIMIT 1000"""
)


class Flow(BaseModel):
    """A row of `exact`."""

    step: int
    side: str
    kind: str
    name: str
    by_kind: str
    by_name: str
    events: int


def exact(
    connection: Connection,
    *,
    of: str,
    direction: str,
    depth: int,
    segment: str | None,
    first: int | None,
    past: int | None,
) -> list[Flow]:
    """Return what commits read and wrote, those of a group or of a writer together. Files and folders by the folder that they are in."""
    result = connection.execute(
        EXACT,
        {
            "of": of,
            "direction": direction,
            "depth": depth,
            "segment": segment,
            "first": first,
            "past": past,
        },
    )
    return [Flow(**row._mapping) for row in result]
