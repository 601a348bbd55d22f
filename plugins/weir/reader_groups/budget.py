"""Limit what one batch reads: its budget, and the files that fit into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection, text

from weir.model.bounds import Bound
from weir.model.segment import Segment
from weir.settings import Settings

# What a batch takes or leaves as a whole: a file; the files of a commit whose ranks overlap, which
# one task of the append wrote (a *rank run*: what comes before one comes first in write order); or
# the commits of one clock.
Unit = Literal["file", "run", "commit"]


@dataclass(frozen=True)
class Budget:
    """The most that one batch reads. Only its first unit may exceed that, however large it is, so
    that every budget lets a group advance."""

    events: int
    bytes: int
    files: int

    @classmethod
    def of(cls, settings: Settings) -> "Budget":
        """Return the budget of an installation."""
        return cls(settings.batch_events, settings.batch_bytes, settings.batch_files)

    def part(self, parts: int) -> "Budget":
        """Return one of so many equal parts."""
        return Budget(*(max(1, most // parts) for most in (self.events, self.bytes, self.files)))


@dataclass(frozen=True)
class Fit:
    """What fits: by stream and segment id the end offset, or everything if `ends` is None; and the
    bytes of that. `clock`: the newest clock in it, if not everything fits."""

    ends: dict[tuple[int, int], int] | None
    bytes: int
    clock: int | None = None

    def end(self, stream_id: int, segment: Segment, start: int, end: int) -> int:
        """Return how far to read a segment that could be read from `start` to `end`."""
        if self.ends is None:
            return end
        return self.ends.get((stream_id, segment.segment_id), start)


ALL = Fit(None, 0)


def fit(
    connection: Connection, wanted: Sequence[Bound], budget: Budget, unit: Unit = "file"
) -> Fit:
    """Return how much of `wanted` a budget allows.

    It adds commit after commit, and of each commit unit after unit over all its segments, until one
    does not fit. So no part of the key space gets ahead (semantics 16.2), predecessors are read
    before their successors, and no file is read twice for parts of it. The query walks the commits
    by their clocks, no further than the budget, and not at all if everything fits.
    """
    rows = connection.execute(
        _FIT,
        {
            "streams": [bound.stream_id for bound in wanted],
            "segments": [bound.segment_id for bound in wanted],
            "starts": [bound.start for bound in wanted],
            "ends": [bound.end for bound in wanted],
            "events": budget.events,
            "bytes": budget.bytes,
            "files": budget.files,
            "unit": unit,
        },
    ).all()
    size = sum(row.bytes for row in rows)
    if rows and rows[0].stream_id is None:
        return Fit(None, size)
    ends = {(row.stream_id, row.segment_id): row.past for row in rows}
    return Fit(ends, size, max((r.clock for r in rows if r.clock is not None), default=None))


# The files of `w`, from the one on that holds its first offset. (OFFSET 0 here and below: an index
# probe for each, whatever Postgres believes of the average stream.)
_FILES = """data_file f WHERE f.stream_id = w.stream_id AND f.segment_id = w.segment_id
    AND f.start_offset < w.past AND f.start_offset + f.events > w.first
    AND f.start_offset >= coalesce((
        SELECT n.start_offset FROM data_file n WHERE n.stream_id = w.stream_id
        AND n.segment_id = w.segment_id AND n.start_offset <= w.first
        ORDER BY n.start_offset DESC LIMIT 1), 0)"""
_WANTED = """least(w.past, f.start_offset + f.events) - greatest(w.first, f.start_offset)"""

# All files, if they fit into the budget and begin at the positions (then their events add up to
# what is wanted). Otherwise by stream where to begin and to end, and for each commit from there on
# its files in which events are wanted. A file counts for the commit of its first unread event,
# because compaction puts events of several commits into one file.
_FIT = text(
    f"""WITH wanted AS MATERIALIZED (
        SELECT * FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                             CAST(:starts AS bigint[]), CAST(:ends AS bigint[]))
            AS w (stream_id, segment_id, first, past) WHERE first < past
    ), file AS (
        SELECT f.events, f.bytes FROM wanted w CROSS JOIN LATERAL (
            SELECT {_WANTED} AS events, f.bytes * ({_WANTED}) / f.events AS bytes FROM data_file f
            WHERE f.stream_id = w.stream_id AND f.segment_id = w.segment_id
              AND f.start_offset >= w.first AND f.start_offset < w.past OFFSET 0) f
        LIMIT CAST(:files AS bigint) + 1
    ), total AS MATERIALIZED (
        SELECT coalesce(sum(bytes), 0) AS bytes,
               count(*) <= :files AND coalesce(sum(events), 0) <= :events
               AND coalesce(sum(bytes), 0) <= :bytes
               AND coalesce(sum(events), 0) =
                   (SELECT coalesce(sum(past - first), 0) FROM wanted) AS fits
        FROM file
    ), begun AS MATERIALIZED (
        SELECT w.*, b.start_offset, (
                SELECT i.clock FROM time_index i
                WHERE i.stream_id = w.stream_id AND i.segment_id = w.segment_id
                  AND i.start_offset <= greatest(w.first, b.start_offset)
                ORDER BY i.start_offset DESC LIMIT 1) AS clock, (
                SELECT i.clock FROM time_index i
                WHERE i.stream_id = w.stream_id AND i.segment_id = w.segment_id
                  AND i.start_offset < w.past
                ORDER BY i.start_offset DESC LIMIT 1) AS last_clock
        FROM wanted w LEFT JOIN LATERAL (
            SELECT f.start_offset FROM {_FILES} ORDER BY f.start_offset LIMIT 1) b ON true
        WHERE NOT (SELECT fits FROM total)
    ), span AS (
        SELECT stream_id, min(clock) AS clock, max(last_clock) AS last_clock,
               jsonb_object_agg(segment_id, jsonb_build_array(first, past, start_offset)) AS places
        FROM begun WHERE start_offset IS NOT NULL GROUP BY stream_id
    ), found AS (
        SELECT x.*
        FROM span s CROSS JOIN LATERAL (
            WITH RECURSIVE done AS (  -- one commit after the other, as far as LIMIT asks for them
                SELECT s.clock
                UNION ALL
                SELECT (SELECT n.clock FROM time_index n
                        WHERE n.stream_id = s.stream_id AND n.clock > d.clock
                        ORDER BY n.clock LIMIT 1)
                FROM done d WHERE d.clock < s.last_clock
            )
            SELECT d.clock, c.* FROM done d CROSS JOIN LATERAL (
                SELECT f.*
                FROM time_index i
                CROSS JOIN LATERAL (
                    SELECT (place ->> 0)::bigint AS first, (place ->> 1)::bigint AS past,
                           (place ->> 2)::bigint AS start_offset
                    FROM (SELECT s.places -> i.segment_id::text AS place OFFSET 0) p
                    WHERE place IS NOT NULL OFFSET 0) w
                CROSS JOIN LATERAL (
                    SELECT f.stream_id, f.segment_id,
                           CASE WHEN :unit = 'run' THEN f.first_seq
                           ELSE greatest(f.start_offset, w.first) - i.start_offset END AS place,
                           f.last_seq, least(w.past, f.start_offset + f.events) AS past,
                           {_WANTED} AS events, f.bytes * ({_WANTED}) / f.events AS bytes
                    FROM data_file f
                    WHERE f.stream_id = i.stream_id AND f.segment_id = i.segment_id
                      AND f.start_offset >= CASE WHEN i.start_offset <= w.first
                                            THEN w.start_offset ELSE i.start_offset END
                      AND f.start_offset < least(i.start_offset + i.events, w.past) OFFSET 0) f
                WHERE i.stream_id = s.stream_id AND i.clock = d.clock
                  AND i.start_offset + i.events > w.first
                ORDER BY f.place, f.segment_id) c
            -- The first unit is taken whatever its size, so it must be here as a whole.
            LIMIT CAST(:files AS bigint) + 1 + CASE WHEN :unit = 'file' THEN 0 ELSE coalesce((
                SELECT t.files FROM time_index i
                JOIN transaction t ON t.stream_id = i.stream_id
                    AND t.transaction_number = i.transaction_number
                WHERE i.stream_id = s.stream_id AND i.clock = s.clock LIMIT 1), 0) END) x
    ), begins AS (
        SELECT f.*, coalesce(f.place > max(f.last_seq) OVER (
            PARTITION BY f.stream_id, f.clock ORDER BY f.place, f.segment_id
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true) AS run
        FROM found f
    ), numbered AS (
        SELECT b.*, CASE :unit
            WHEN 'commit' THEN dense_rank() OVER (ORDER BY b.clock)
            WHEN 'run' THEN count(*) FILTER (WHERE b.run)
                OVER (ORDER BY b.clock, b.stream_id, b.place, b.segment_id)
            ELSE row_number() OVER (ORDER BY b.clock, b.place, b.stream_id, b.segment_id)
            END AS unit
        FROM begins b
    ), walked AS (  -- up to the end of each unit
        SELECT n.*, count(*) OVER w AS files, sum(n.events) OVER w AS events_till,
               sum(n.bytes) OVER w AS bytes_till
        FROM numbered n WINDOW w AS (ORDER BY n.unit)
    )
    SELECT stream_id, segment_id, max(past) AS past, sum(bytes)::bigint AS bytes,
           max(clock) AS clock
    FROM walked
    WHERE unit = 1
       OR files <= :files AND events_till <= :events AND bytes_till <= :bytes
    GROUP BY stream_id, segment_id
    UNION ALL  -- what was truncated meanwhile costs nothing
    SELECT stream_id, segment_id, past, 0, NULL FROM begun WHERE start_offset IS NULL
    UNION ALL
    SELECT NULL, NULL, NULL, bytes::bigint, NULL FROM total WHERE fits"""  # noqa: S608 - constants
)
