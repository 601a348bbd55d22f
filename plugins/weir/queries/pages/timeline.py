"""Streams, groups and owners over time. Made by `make queries` from sql/queries/pages/timeline.sql."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from pydantic import BaseModel
from sqlalchemy import Connection, text

ASKED = text(
    """SELECT statement_timestamp() AS now, coalesce((
        SELECT min(h.grain) FROM history_grains() h
        WHERE statement_timestamp() - h.kept - interval '1 hour' <= statement_timestamp() - CAST(:age AS interval)), 86400) AS grain,
    (SELECT count(*) FROM reader_group g JOIN reader_group_stream USING (group_id) WHERE g.name = ANY(:groups)) AS pairs"""
)


class Asked(BaseModel):
    """A row of `asked`."""

    now: datetime
    grain: int
    pairs: int


def asked(connection: Connection, *, age: timedelta, groups: Sequence[str]) -> Asked:
    """Return how fine the past is known since a time, and how many streams some groups read, all together."""
    result = connection.execute(ASKED, {"age": age, "groups": list(groups)})
    row = result.one()
    return Asked(**row._mapping)


NEWEST = text(
    """SELECT array(SELECT s.stream_name FROM stream s WHERE s.state <> 'deleted' AND s.stream_name NOT LIKE '%.rejected'
             ORDER BY s.last_clock DESC, s.stream_name LIMIT :most) AS streams,
    array(SELECT g.name FROM reader_group g ORDER BY g.moved_at DESC, g.name LIMIT :most) AS groups"""
)


class Newest(BaseModel):
    """A row of `newest`."""

    streams: list[str]
    groups: list[str]


def newest(connection: Connection, *, most: int) -> Newest:
    """Return the streams and the groups that have moved last."""
    result = connection.execute(NEWEST, {"most": most})
    row = result.one()
    return Newest(**row._mapping)


STREAMS = text(
    """SELECT s.stream_name AS stream, s.owner, t.events AS events_now, t.bytes AS bytes_now, h.bytes AS gone,
    p.recorded, p.events, p.bytes
FROM stream s
CROSS JOIN LATERAL size_till(s.stream_id, tail_cut(s.stream_id)) t
CROSS JOIN LATERAL size_till(s.stream_id, s.head) h
CROSS JOIN LATERAL (
    SELECT array_agg(v.recorded_at ORDER BY a.nth) AS recorded, array_agg(v.events ORDER BY a.nth) AS events,
        array_agg(v.bytes ORDER BY a.nth) AS bytes
    FROM unnest(CAST(:times AS timestamptz[])) WITH ORDINALITY AS a (at, nth)
    LEFT JOIN LATERAL (
        SELECT a.at AS recorded_at, 0::bigint AS events, 0::bigint AS bytes WHERE s.created_at >= a.at
        UNION ALL
        SELECT clock_time(s.last_clock), t.events, t.bytes WHERE clock_time(s.last_clock) <= a.at
        UNION ALL
        SELECT * FROM stream_size_at(s.stream_id, :grain, a.at)
        LIMIT 1) v ON true) p
WHERE s.stream_name = ANY(:names) AND s.state <> 'deleted' ORDER BY s.stream_name"""
)


class StreamPast(BaseModel):
    """The sizes of a stream, each with when it was recorded; null where that is not known. `gone`: the bytes below the head now."""

    stream: str
    owner: str | None
    events_now: int
    bytes_now: int
    gone: int
    recorded: list[datetime | None]
    events: list[int | None]
    bytes: list[int | None]


def streams(
    connection: Connection, *, times: Sequence[datetime], grain: int, names: Sequence[str]
) -> list[StreamPast]:
    """Return how large streams were by each of some times, as last recorded, and how large they are."""
    result = connection.execute(
        STREAMS, {"times": list(times), "grain": grain, "names": list(names)}
    )
    return [StreamPast(**row._mapping) for row in result]


TRUNCATED = text(
    """SELECT t.stream, width_bucket(t.truncated_at, CAST(:times AS timestamptz[])) AS after, sum(t.bytes)::bigint AS bytes
FROM weir.truncations t
WHERE t.stream = ANY(:names) AND t.truncated_at >= (CAST(:times AS timestamptz[]))[1]
GROUP BY 1, 2 ORDER BY 1, 2"""
)


class Gone(BaseModel):
    """A row of `truncated`."""

    stream: str
    after: int
    bytes: int


def truncated(
    connection: Connection, *, times: Sequence[datetime], names: Sequence[str]
) -> list[Gone]:
    """Return the bytes that were truncated of streams after each of some times, and before the next one."""
    result = connection.execute(TRUNCATED, {"times": list(times), "names": list(names)})
    return [Gone(**row._mapping) for row in result]


GROUPS = text(
    """WITH pair AS MATERIALIZED (
    SELECT g.group_id, g.name, g.created_at, g.moved_at, l.stream_id, l.stream, clock_time(s.last_clock) AS appended_at,
        l.unread_events AS unread, l.unread_bytes, z.events AS read, z.bytes AS read_bytes, t.events AS tail, t.bytes AS tail_bytes,
        CASE WHEN l.end_cut IS NOT NULL THEN z.events + l.unread_events END AS last,
        CASE WHEN l.end_cut IS NOT NULL THEN z.bytes + l.unread_bytes END AS last_bytes
    FROM reader_group g JOIN weir.lag l ON l.reader_group = g.name
    JOIN stream s USING (stream_id)
    CROSS JOIN LATERAL size_till(l.stream_id, l.position) z
    CROSS JOIN LATERAL size_till(l.stream_id, tail_cut(l.stream_id)) t
    WHERE g.name = ANY(:names)
), past AS (
    SELECT p.name, a.nth, max(h.recorded_at) AS recorded, sum(h.read)::bigint AS read, count(h.read + e.tail) = count(*) AS known,
        sum(u.events)::bigint AS unread, sum(CASE WHEN u.events > 0 THEN
            (least(e.bytes, p.last_bytes) - h.read_bytes) * u.events::numeric / (least(e.tail, p.last) - h.read) ELSE 0 END)::bigint AS unread_bytes
    FROM pair p
    CROSS JOIN unnest(CAST(:times AS timestamptz[])) WITH ORDINALITY AS a (at, nth)
    LEFT JOIN LATERAL (
        SELECT f.* FROM (
            SELECT p.moved_at AS recorded_at, p.read, p.read_bytes, NULL::bigint AS until, NULL::bigint AS bytes_until WHERE p.moved_at <= a.at
            UNION ALL
            SELECT g.recorded_at, g.read, g.read_bytes, g.read + g.unread, g.read_bytes + g.unread_bytes FROM group_place_at(p.group_id, p.stream_id, :grain, a.at) g
            LIMIT 1) f WHERE p.created_at < a.at) h ON true
    LEFT JOIN LATERAL stream_size_at(p.stream_id, :grain, a.at) s ON true
    LEFT JOIN LATERAL (
        SELECT t.events_until FROM truncation t WHERE t.stream_name = p.stream AND t.truncated_at < a.at
        ORDER BY t.truncated_at DESC LIMIT 1) k ON true
    CROSS JOIN LATERAL (
        SELECT CASE WHEN p.appended_at <= a.at THEN p.tail ELSE greatest(s.events, h.until) END AS tail,
            CASE WHEN p.appended_at <= a.at THEN p.tail_bytes ELSE greatest(s.bytes, h.bytes_until) END AS bytes) e
    CROSS JOIN LATERAL (SELECT greatest(0, least(e.tail, p.last) - greatest(h.read, k.events_until)) AS events) u
    GROUP BY p.name, a.nth
)
SELECT n.name AS reader_group, n.read AS read_now, n.unread AS unread_now, n.unread_bytes AS unread_bytes_now, p.recorded, p.read, p.unread,
    p.unread_bytes
FROM (SELECT name, sum(read)::bigint AS read, sum(unread)::bigint AS unread, sum(unread_bytes)::bigint AS unread_bytes FROM pair GROUP BY name) n
CROSS JOIN LATERAL (
    SELECT array_agg(CASE WHEN p.known THEN p.recorded END ORDER BY p.nth) AS recorded,
        array_agg(CASE WHEN p.known THEN p.read END ORDER BY p.nth) AS read,
        array_agg(CASE WHEN p.known THEN p.unread END ORDER BY p.nth) AS unread,
        array_agg(CASE WHEN p.known THEN p.unread_bytes END ORDER BY p.nth) AS unread_bytes
    FROM past p WHERE p.name = n.name) p
ORDER BY n.name"""
)


class GroupPast(BaseModel):
    """What a group had read and not read; null where that is not known."""

    reader_group: str
    read_now: int
    unread_now: int
    unread_bytes_now: int
    recorded: list[datetime | None]
    read: list[int | None]
    unread: list[int | None]
    unread_bytes: list[int | None]


def groups(
    connection: Connection, *, names: Sequence[str], times: Sequence[datetime], grain: int
) -> list[GroupPast]:
    """Return how far groups were by each of some times, as last recorded, and how far they are, all their streams together. What is unread is what was so when the place was recorded, or what was appended by then, if that is more; less what was truncated, and what lies behind the end of the group. Where some of it was truncated, its bytes are divided as its events."""
    result = connection.execute(
        GROUPS, {"names": list(names), "times": list(times), "grain": grain}
    )
    return [GroupPast(**row._mapping) for row in result]


OWNERS = text(
    """SELECT owner, slot AS at, streams, bytes FROM owner_history
WHERE grain = :grain AND slot >= :since ORDER BY owner, slot"""
)


class Owners(BaseModel):
    """What the streams of an owner kept; of those of nobody `owner` is empty."""

    owner: str
    at: datetime
    streams: int
    bytes: int


def owners(connection: Connection, *, grain: int, since: datetime) -> list[Owners]:
    """Return what the streams of owners kept after a time, by hours or days."""
    result = connection.execute(OWNERS, {"grain": grain, "since": since})
    return [Owners(**row._mapping) for row in result]
