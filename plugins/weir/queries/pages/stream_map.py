"""A stream as a map: key space over time. Made by `make queries` from sql/queries/pages/stream_map.sql."""

from collections.abc import Sequence

from pydantic import BaseModel
from sqlalchemy import Connection, text

MAPPED_STREAM = text(
    """SELECT s.stream_id, coalesce(s.sealed_clock, (now_clock() / 60000000 + 1) * 60000000) AS ends,
    (SELECT min(created_at) FROM epoch e WHERE e.stream_id = s.stream_id) AS begins,
    (SELECT count(*) FROM segment_tail t WHERE t.stream_id = s.stream_id) AS active
FROM stream s WHERE s.stream_name = :stream AND s.state <> 'deleted'"""
)


class MappedStream(BaseModel):
    """A row of `mapped_stream`."""

    stream_id: int
    ends: int
    begins: int
    active: int


def mapped_stream(connection: Connection, *, stream: str) -> MappedStream | None:
    """Return a stream: when it ends, or the next minute that begins, when it began, and its active segments."""
    result = connection.execute(MAPPED_STREAM, {"stream": stream})
    row = result.one_or_none()
    return None if row is None else MappedStream(**row._mapping)


LIVED = text(
    """SELECT g.segment_id, g.key_low, g.key_high,
    coalesce((SELECT c.created_at FROM epoch c
              WHERE c.stream_id = :id AND c.epoch = g.creation_epoch), :begins) AS begins,
    coalesce(g.sealed_clock, :ends) AS ends,
    coalesce(g.events, (SELECT t.tail_offset FROM segment_tail t
                        WHERE t.stream_id = :id AND t.segment_id = g.segment_id)) AS events
FROM (SELECT * FROM segment WHERE stream_id = :id
          AND creation_epoch <= (SELECT epoch_at(:id, :until - 1))
          AND (sealed_epoch IS NULL OR sealed_epoch > (SELECT epoch_at(:id, :since)))
      LIMIT :most) g"""
)


class Lived(BaseModel):
    """A row of `lived`."""

    segment_id: int
    key_low: float
    key_high: float
    begins: int
    ends: int
    events: int


def lived(
    connection: Connection, *, id: int, begins: int, ends: int, until: int, since: int, most: int
) -> list[Lived]:
    """Return the segments that there were between two times, `most` of them. One whose epoch is pruned is as old as the stream."""
    result = connection.execute(
        LIVED,
        {"id": id, "begins": begins, "ends": ends, "until": until, "since": since, "most": most},
    )
    return [Lived(**row._mapping) for row in result]


OFFSETS = text(
    """WITH asked AS MATERIALIZED (
    SELECT a.segment_id, p.last, c.clock, c.start_offset + c.events AS events
    FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:ends AS bigint[]))
        AS a (segment_id, first, ends)
    CROSS JOIN LATERAL (
        SELECT at, false AS last FROM generate_series(a.first, a.ends - 1, CAST(:width AS bigint)) AS at
        UNION ALL SELECT a.ends, true) p
    LEFT JOIN LATERAL commit_by(:id, a.segment_id, p.at) c ON true)
SELECT segment_id, clock, events FROM asked WHERE clock IS NOT NULL
UNION
SELECT a.segment_id, n.clock, n.start_offset + n.events
FROM asked a
CROSS JOIN LATERAL commit_from(:id, a.segment_id, coalesce(a.events, 0)) f
CROSS JOIN LATERAL commit_by(:id, a.segment_id, f.clock) n
WHERE a.last
ORDER BY 1, 2"""
)


class Offsets(BaseModel):
    """A row of `offsets`."""

    segment_id: int
    clock: int
    events: int


def offsets(
    connection: Connection,
    *,
    segments: Sequence[int],
    firsts: Sequence[int],
    ends: Sequence[int],
    width: int,
    id: int,
) -> list[Offsets]:
    """Return what segments had got at each time of their lives, and after the first commit after all of these."""
    result = connection.execute(
        OFFSETS,
        {
            "segments": list(segments),
            "firsts": list(firsts),
            "ends": list(ends),
            "width": width,
            "id": id,
        },
    )
    return [Offsets(**row._mapping) for row in result]


CELLS = text(
    """WITH bound AS MATERIALIZED (
    SELECT array_agg(epoch_at(:id, b.at) ORDER BY b.at) AS epochs,
        array_agg(b.at ORDER BY b.at) AS times
    FROM unnest(CAST(:times AS bigint[])) AS b (at)),
lived AS MATERIALIZED (
    SELECT g.segment_id, g.key_low, g.key_high, g.events,
        width_bucket(g.creation_epoch - 1, b.epochs) AS first,
        coalesce(width_bucket(g.sealed_epoch - 1, b.epochs), CAST(:parts AS integer) + 1) AS gone
    FROM segment g CROSS JOIN bound b
    WHERE g.stream_id = :id AND (g.sealed_epoch IS NULL OR g.sealed_epoch > b.epochs[1])
        AND g.creation_epoch <= b.epochs[CAST(:parts AS integer) + 1]),
came AS (
    SELECT key_low, key_high, gone - 1 AS part, count(*) AS segments, sum(events) AS events
    FROM lived WHERE gone <= :parts GROUP BY 1, 2, 3
    UNION ALL
    SELECT l.key_low, l.key_high, p.part, p.last, p.sign * coalesce(c.start_offset + c.events, 0)
    FROM lived l CROSS JOIN bound b
    CROSS JOIN LATERAL generate_series(l.first, least(l.gone - 1, :parts)) AS i
    LEFT JOIN LATERAL commit_by(:id, l.segment_id, b.times[i + 1]) c ON true
    CROSS JOIN LATERAL (VALUES (i - 1, 1, (i = :parts)::int), (i, -1, 0)) AS p (part, sign, last)
    WHERE l.first < l.gone AND p.part BETWEEN 0 AND CAST(:parts AS integer) - 1)
SELECT r.at, c.part, sum(c.segments)::bigint AS segments,
    sum(c.events * (least((r.at + 1.0) / :grid, c.key_high)
        - greatest(r.at::float / :grid, c.key_low)) / (c.key_high - c.key_low))::float8 AS events
FROM came c CROSS JOIN LATERAL generate_series(
    floor(c.key_low * :grid)::int, ceil(c.key_high * :grid)::int - 1) AS r (at)
GROUP BY r.at, c.part ORDER BY 1, 2"""
)


class Cells(BaseModel):
    """A row of `cells`."""

    at: int
    part: int
    segments: int
    events: float


def cells(
    connection: Connection, *, id: int, times: Sequence[int], parts: int, grid: float
) -> list[Cells]:
    """Return what came to each row of a grid in each part of the time, and how many more segments it has since. A segment is there from one of the times to before another one, or only between two of them. A part has what its segments had at its end, less what they had at its begin."""
    result = connection.execute(
        CELLS, {"id": id, "times": list(times), "parts": parts, "grid": grid}
    )
    return [Cells(**row._mapping) for row in result]


CHANGES = text(
    """SELECT kind, min(clock) AS clock, count(*) AS number FROM (
    SELECT CASE WHEN cause IN ('roll', 'policy') THEN cause ELSE 'scale' END AS kind,
        created_at AS clock
    FROM epoch WHERE stream_id = :id AND cause <> 'create' AND created_at BETWEEN :since AND :until
    UNION ALL
    SELECT 'cut', time_clock(recorded_at) FROM stream_cut
    WHERE stream_id = :id AND recorded_at BETWEEN clock_time(:since) AND clock_time(:until)) m
GROUP BY kind, (clock - :since) / :apart ORDER BY 2, 1"""
)


class Changes(BaseModel):
    """A row of `changes`."""

    kind: str
    clock: int
    number: int


def changes(
    connection: Connection, *, id: int, since: int, until: int, apart: int
) -> list[Changes]:
    """Return changes of a kind, those that are close to each other as one."""
    result = connection.execute(CHANGES, {"id": id, "since": since, "until": until, "apart": apart})
    return [Changes(**row._mapping) for row in result]


PLACES = text(
    """WITH every AS MATERIALIZED (
    SELECT 1 + count(*) / CAST(:segments AS bigint) AS nth FROM segment_tail WHERE stream_id = :id),
entry AS (
    SELECT '' AS name, e.segment_id, e.event_offset
    FROM stream s CROSS JOIN LATERAL cut_entries(s.head) e WHERE s.stream_id = :id
    UNION ALL
    SELECT g.name, p.segment_id, p.next_offset
    FROM (SELECT g.group_id, g.name FROM reader_group g JOIN reader_group_stream USING (group_id)
          WHERE stream_id = :id ORDER BY g.name LIMIT :groups) g
    JOIN reader_group_segment p ON p.group_id = g.group_id AND p.stream_id = :id),
place AS MATERIALIZED (
    SELECT e.name, g.key_low, g.key_high, e.event_offset IS NOT NULL AS present, CASE
        WHEN coalesce(e.event_offset, 0) = 0 THEN coalesce(c.created_at, :begins)
        WHEN e.event_offset >= coalesce(g.events, t.tail_offset)
        THEN coalesce(g.sealed_clock, :ends)
        ELSE coalesce(
            (SELECT i.clock FROM commit_at(:id, e.segment_id, e.event_offset - 1) i),
            (SELECT i.clock FROM commit_from(:id, e.segment_id, e.event_offset) i),
            c.created_at, :begins)
        END AS clock
    FROM entry e CROSS JOIN every
    JOIN segment g ON g.stream_id = :id AND g.segment_id = e.segment_id
    LEFT JOIN segment_tail t ON t.stream_id = :id AND t.segment_id = e.segment_id
    LEFT JOIN epoch c ON c.stream_id = :id AND c.epoch = g.creation_epoch
    WHERE e.segment_id % every.nth = 0)
SELECT name, part, coalesce(min(clock) FILTER (WHERE present), min(clock)) AS clock
FROM place CROSS JOIN LATERAL generate_series(
    floor(key_low * :line)::int, ceil(key_high * :line)::int - 1) AS part
GROUP BY name, part ORDER BY name, part"""
)


class Places(BaseModel):
    """A row of `places`."""

    name: str
    part: int
    clock: int


def places(
    connection: Connection,
    *,
    segments: int,
    id: int,
    groups: int,
    begins: int,
    ends: int,
    line: float,
) -> list[Places]:
    """Return when the head ('') and the groups have come to where they are, in each part of the key space. What a future segment shares with a present one is passed only up to the present one."""
    result = connection.execute(
        PLACES,
        {
            "segments": segments,
            "id": id,
            "groups": groups,
            "begins": begins,
            "ends": ends,
            "line": line,
        },
    )
    return [Places(**row._mapping) for row in result]
