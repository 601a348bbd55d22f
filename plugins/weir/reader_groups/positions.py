"""Read the positions of a group, and move them when a batch is committed."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.retention_queue import queueing
from weir.model.bounds import Bound, Graph, SegmentState
from weir.model.segment import Segment
from weir.model.stream_cut import ready
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.starting_points import Cuts

# Record that the group was active. If it had timed out, it holds retention back again from now on,
# so its streams are queued for a decision.
_TIMED_OUT = """reader_group JOIN reader_group_stream USING (group_id)
            JOIN stream USING (stream_id)
        WHERE group_id = :g AND subscriber AND stream.state = 'active'
          AND moved_at + time_out * interval '1 second' < clock_timestamp()"""
MOVED = f"""noted AS (
        UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :g
    ), back AS (
        {queueing(_TIMED_OUT)}
    )"""  # noqa: S608 - constants


def placing(cuts: str) -> str:
    """Return SQL that adds the positions of a group at cuts.

    `cuts`: what follows FROM, rows with `stream_id` and `cut`; `:g` is the group.
    """
    return f"""INSERT INTO reader_group_segment
                (group_id, stream_id, segment_id, state, next_offset)
            SELECT :g, c.stream_id, e.segment_id,
                   CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END,
                   e.event_offset
            FROM {cuts} c CROSS JOIN LATERAL cut_entries(c.cut) e"""  # noqa: S608 - constants


def placed(cuts: str, cause: str) -> str:
    """Return SQL that records a move that no batch made (reset, skip). Put it into the statement
    that deletes the old positions, or before that.

    `cuts`: as in `placing`. `cause`: see the table. Moves that follow one another are one row,
    unless events went in between: a receipt is compared with where the group was then.
    """
    return f"""INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at,
                cut)
            SELECT :g, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :g),
                   CASE WHEN l.cause = '{cause}' AND l.cause = 'moved' THEN l.number
                   ELSE coalesce(l.number, 0) + 1 END, '{cause}', group_cut(:g, c.stream_id), c.cut
            FROM {cuts} c LEFT JOIN LATERAL (
                SELECT o.number, CASE WHEN NOT EXISTS (
                    SELECT FROM delivered_range d WHERE d.group_id = :g
                    AND d.stream_id = c.stream_id AND d.placement = o.number) AND NOT EXISTS (
                        SELECT FROM (SELECT truncated_at FROM truncation
                                     WHERE stream_id = c.stream_id ORDER BY number DESC LIMIT 1) t
                        WHERE t.truncated_at >= o.placed_at) THEN o.cause END
                    AS cause
                FROM placement o WHERE o.group_id = :g AND o.stream_id = c.stream_id
                ORDER BY o.number DESC LIMIT 1) l ON true
            ON CONFLICT (group_id, stream_id, number) DO UPDATE SET
                cut = excluded.cut, placed_at = excluded.placed_at"""  # noqa: S608 - constants


Key = tuple[int, int]  # stream and segment id
MOST_SEGMENTS_AHEAD = 20_000  # the most that one batch looks at, besides direct successors


class Position(NamedTuple):
    """The position of a group in a segment; `next_offset` is None while predecessors are unread."""

    stream_id: int
    state: SegmentState
    next_offset: int | None
    reader_id: str | None
    batch_id: int | None

    @property
    def segment(self) -> Segment:
        """The segment."""
        return self.state.segment

    @property
    def key(self) -> Key:
        """The ids of the stream and of the segment, which are unique in the group."""
        return self.stream_id, self.state.segment.segment_id


_POSITIONS = text(
    """SELECT p.stream_id, p.segment_id, s.key_low, s.key_high,
              coalesce(t.tail_offset, s.events), s.sealed_epoch, p.next_offset,
              p.reader_id, h.batch_id
    FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
    LEFT JOIN segment_tail t USING (stream_id, segment_id)
    LEFT JOIN held_segments(:g) h USING (stream_id, segment_id)
    WHERE p.group_id = :g AND p.state <> 'completed' ORDER BY p.stream_id, p.segment_id"""
)


def read_positions(connection: Connection, group: LockedGroup) -> list[Position]:
    """Return all positions of a group, ordered by stream and segment."""
    rows = connection.execute(
        _POSITIONS,
        {"g": group.group_id},
    )
    return [
        Position(
            stream_id, SegmentState(Segment(segment_id, low, high), end, sealed_epoch),
            next_offset, reader_id, batch_id,
        )
        for stream_id, segment_id, low, high, end, sealed_epoch, next_offset, reader_id, batch_id
        in rows.all()
    ]  # fmt: skip


def read_graphs(
    connection: Connection, group: LockedGroup, positions: Sequence[Position]
) -> dict[int, Graph]:
    """Return by stream id the segments at the positions and those that follow them, up to a limit.

    All direct successors are included, so that a group can always advance. Segments that the group
    has passed are not, however old a position's segment is: the cost depends on what is unread.
    """
    states: dict[int, list[SegmentState]] = {}
    for position in positions:
        states.setdefault(position.stream_id, []).append(position.state)
    if any(position.state.sealed_epoch is not None for position in positions):
        rows = connection.execute(_AHEAD, {"g": group.group_id, "most": MOST_SEGMENTS_AHEAD})
        for row in rows:
            states[row[0]].append(_state(row))
    return {stream_id: Graph(found) for stream_id, found in states.items()}


def read_lags(connection: Connection, group: LockedGroup) -> dict[Key, int]:
    """Return by position how far it is behind, in microseconds: the stream's last clock minus the
    clock of the first unread event, or of the scale that sealed the segment if none is unread."""
    rows = connection.execute(
        text(
            """SELECT u.stream_id, u.segment_id, s.last_clock - u.clock
            FROM oldest_unread(:g) u JOIN stream s USING (stream_id)"""
        ),
        {"g": group.group_id},
    )
    return {(row[0], row[1]): row[2] for row in rows}


def read_rates(connection: Connection, group: LockedGroup) -> dict[str, float]:
    """Return the events per second of each reader whose recent batches say how fast it is."""
    rows = connection.execute(
        text("SELECT reader_id, rate FROM read_rates(:group)"),
        {"group": group.name},
    )
    return {row.reader_id: row.rate for row in rows}


# The segments that an epoch created follow those that it sealed. The group has not passed one if it
# is at least as new as the group's position at the same key. One key decides, because a group
# passes a segment as a whole.
_CREATED = """CROSS JOIN LATERAL (
        SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
               coalesce(t.tail_offset, g.events) AS ends_at, g.sealed_epoch
        FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
        WHERE g.stream_id = a.stream_id AND g.segment_id >= first_segment_id(a.epoch)
          AND g.segment_id < first_segment_id(a.epoch + 1)
          AND g.segment_id >= (SELECT f.owners[width_bucket(g.key_low, f.keys)]
                               FROM front f WHERE f.stream_id = g.stream_id) OFFSET 0) n"""
_AHEAD = text(
    f"""WITH RECURSIVE positions AS MATERIALIZED (
        SELECT p.stream_id, s.segment_id, s.key_low, s.key_high, s.sealed_epoch
        FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
        WHERE p.group_id = :g AND p.state <> 'completed'
    ), front AS MATERIALIZED (
        SELECT l.stream_id, f.keys, f.owners
        FROM (SELECT stream_id, array_agg(segment_id) AS ids, array_agg(key_low) AS lows,
                     array_agg(key_high) AS highs FROM positions GROUP BY stream_id) l
        CROSS JOIN LATERAL front(l.ids, l.lows, l.highs) f
    ), ahead AS (
        SELECT stream_id, sealed_epoch AS epoch FROM positions WHERE sealed_epoch IS NOT NULL
        UNION
        SELECT a.stream_id, n.sealed_epoch FROM ahead a {_CREATED} WHERE n.sealed_epoch IS NOT NULL
    )
    SELECT n.* FROM (SELECT DISTINCT stream_id, sealed_epoch AS epoch FROM positions
                     WHERE sealed_epoch IS NOT NULL) a {_CREATED}
    UNION ALL
    (SELECT n.* FROM ahead a {_CREATED} LIMIT :most)"""  # noqa: S608 - constants
)


_ADVANCE = text(
    f"""WITH {MOVED}, passed AS (
        DELETE FROM reader_group_segment p
        USING unnest(CAST(:done_streams AS bigint[]), CAST(:done_segments AS bigint[]))
            AS d (stream_id, segment_id)
        WHERE p.group_id = :g AND p.stream_id = d.stream_id
          AND p.segment_id = d.segment_id
    ), entered AS (
        INSERT INTO reader_group_segment AS p (group_id, stream_id, segment_id, state,
                                               next_offset, reader_id)
        SELECT :g, e.stream_id, e.segment_id,
               CASE WHEN e.next_offset IS NULL THEN 'future'
                    WHEN e.mine THEN 'assigned' ELSE 'unassigned' END,
               e.next_offset, CASE WHEN e.mine THEN CAST(:reader_id AS text) END
        FROM unnest(CAST(:new_streams AS bigint[]), CAST(:new_segments AS bigint[]),
                    CAST(:new_offsets AS bigint[]), CAST(:new_mine AS boolean[]))
            AS e (stream_id, segment_id, next_offset, mine)
        ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
            state = excluded.state, next_offset = excluded.next_offset,
            reader_id = excluded.reader_id
    )
    UPDATE reader_group_segment p SET state = 'assigned', reader_id = :reader_id,
        next_offset = m.end_offset
    FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                CAST(:ends AS bigint[])) AS m (stream_id, segment_id, end_offset)
    WHERE p.group_id = :g AND p.stream_id = m.stream_id
      AND p.segment_id = m.segment_id"""  # noqa: S608 - constant
)


def advance(
    connection: Connection, group: LockedGroup, bounds: Sequence[Bound], reader_id: str
) -> None:
    """Move the positions to the ends of `bounds`, and replace completed segments by successors.

    A successor can be read when all its predecessors are passed, that is, when no position with a
    smaller segment id overlaps it.
    """
    done = [bound for bound in bounds if bound.completes]
    moved = {(b.stream_id, b.segment_id): b.end for b in bounds if not b.completes}
    entered = _entered(connection, group, done) if done else {}
    went_on = {key: end for key, end in moved.items() if key not in entered}
    connection.execute(
        _ADVANCE,
        {
            "g": group.group_id,
            "reader_id": reader_id,
            "done_streams": [bound.stream_id for bound in done],
            "done_segments": [bound.segment_id for bound in done],
            "new_streams": [stream_id for stream_id, _ in entered],
            "new_segments": [segment_id for _, segment_id in entered],
            "new_offsets": [moved.get(key, offset) for key, offset in entered.items()],
            "new_mine": [key in moved for key in entered],
            "streams": [stream_id for stream_id, _ in went_on],
            "segments": [segment_id for _, segment_id in went_on],
            "ends": list(went_on.values()),
        },
    )


def _entered(
    connection: Connection, group: LockedGroup, done: Sequence[Bound]
) -> dict[Key, int | None]:
    """Return the segments that take the place of completed ones, with offset 0, or None for one
    that waits for another predecessor.

    The positions are then those that are not completed, and the successors of those that are.
    """
    positions = read_positions(connection, group)
    created = connection.execute(
        text(
            """SELECT n.stream_id, n.segment_id, n.key_low, n.key_high, 0, n.sealed_epoch
            FROM (SELECT DISTINCT s.stream_id, s.sealed_epoch AS epoch
                  FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]))
                      AS d (stream_id, segment_id)
                  JOIN segment s USING (stream_id, segment_id)) e
            JOIN segment n ON n.stream_id = e.stream_id
                AND n.segment_id >= first_segment_id(e.epoch)
                AND n.segment_id < first_segment_id(e.epoch + 1)"""
        ),
        {
            "streams": [bound.stream_id for bound in done],
            "segments": [bound.segment_id for bound in done],
        },
    ).all()
    entered: dict[Key, int | None] = {}
    for stream_id in {bound.stream_id for bound in done}:
        here = [p for p in positions if p.stream_id == stream_id]
        graph = Graph([p.state for p in here] + [_state(r) for r in created if r[0] == stream_id])
        by_id = {segment.segment_id: segment for segment in graph.states}
        gone = {by_id[bound.segment_id] for bound in done if bound.stream_id == stream_id}
        following = {next_ for segment in gone for next_ in graph.successors(segment)}
        known = {p.segment for p in here}
        listed = (known | following) - gone
        first = ready(listed)
        waiting = {p.segment for p in here if p.next_offset is None}
        for segment in (listed - known) | (waiting & first):
            entered[stream_id, segment.segment_id] = 0 if segment in first else None
    return entered


def _state(row: Sequence[Any]) -> SegmentState:
    return SegmentState(Segment(row[1], row[2], row[3]), row[4], row[5])


def positions_of(
    connection: Connection, group: LockedGroup, streams: Sequence[LockedStream]
) -> Cuts:
    """Return the position of a group in each of the streams, as a cut."""
    rows = connection.execute(
        text(
            """SELECT stream_id, group_cut(group_id, stream_id) FROM reader_group_stream
            WHERE group_id = :g AND stream_id = ANY(:ids)"""
        ),
        {"g": group.group_id, "ids": [stream.stream_id for stream in streams]},
    ).all()
    return {row[0]: load_cuts(connection, row[0], row[1])[0] for row in rows}


_CUTS = """(SELECT * FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
                AS c (stream_id bigint, cut jsonb))"""


def place_at(connection: Connection, group_id: int, cuts: Cuts) -> None:
    """Move a locked group that has no readers to cuts of its streams, and record its activity."""
    given = json.dumps([{"stream_id": s, "cut": c.to_json()} for s, c in cuts.items()])
    connection.execute(
        text(
            f"""WITH {MOVED}, placed AS (
                {placed(_CUTS, "moved")}
            )
            DELETE FROM reader_group_segment WHERE group_id = :g AND stream_id = ANY(:ids)"""  # noqa: S608 - constant
        ),
        {"g": group_id, "ids": sorted(cuts), "cuts": given},
    )
    connection.execute(text(placing(_CUTS)), {"g": group_id, "cuts": given})
