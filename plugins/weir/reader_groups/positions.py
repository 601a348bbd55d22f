"""The positions of a group, and how they move when a batch is committed."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from weir.controller.locks import LockedGroup
from weir.reader_groups.plan import Bound, SegmentState, successors
from weir.segment import Segment

MOST_SEGMENTS_AHEAD = 20_000  # how much of the graph one batch looks at


@dataclass(frozen=True)
class Position:
    """A segment of a group; `next_offset` is None while it waits for its predecessors."""

    stream_id: int
    segment: Segment
    next_offset: int | None
    reader_id: str | None
    batch_id: int | None

    @property
    def key(self) -> tuple[int, Segment]:
        """What names it in the group."""
        return self.stream_id, self.segment


def read_positions(connection: Connection, group: LockedGroup) -> list[Position]:
    """All positions of a group, by stream and segment."""
    rows = connection.execute(
        text(
            """SELECT p.stream_id, p.segment_id, s.key_low, s.key_high, p.next_offset,
                      p.reader_id, p.batch_id
            FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
            WHERE p.group_id = :g AND p.state <> 'completed' ORDER BY p.stream_id, p.segment_id"""
        ),
        {"g": group.group_id},
    )
    return [Position(r[0], Segment(r[1], r[2], r[3]), r[4], r[5], r[6]) for r in rows]


def read_graph(connection: Connection, group: LockedGroup) -> dict[int, list[SegmentState]]:
    """Per stream the segments from the group's oldest position on, by id, up to a limit.

    The segments at the positions are among them, and their successors: there is always a way on.
    """
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, s.segment_id, s.key_low, s.key_high, s.sealed_epoch, s.ends_at
            FROM reader_group_stream gs CROSS JOIN LATERAL (
                SELECT n.segment_id, n.key_low, n.key_high, n.sealed_epoch,
                       coalesce(t.tail_offset, n.events) AS ends_at
                FROM segment n LEFT JOIN segment_tail t USING (stream_id, segment_id)
                WHERE n.stream_id = gs.stream_id AND n.segment_id >= (
                    SELECT min(p.segment_id) FROM reader_group_segment p
                    WHERE p.group_id = gs.group_id AND p.stream_id = gs.stream_id)
                ORDER BY n.segment_id LIMIT :most) s
            WHERE gs.group_id = :g
            UNION
            SELECT p.stream_id, n.segment_id, n.key_low, n.key_high, n.sealed_epoch,
                   coalesce(t.tail_offset, n.events)
            FROM reader_group_segment p JOIN segment s USING (stream_id, segment_id)
            JOIN segment n ON n.stream_id = s.stream_id AND (n.segment_id = s.segment_id
                OR n.segment_id >= s.sealed_epoch::bigint << 32
                   AND n.segment_id < (s.sealed_epoch + 1)::bigint << 32
                   AND n.key_low < s.key_high AND n.key_high > s.key_low)
            LEFT JOIN segment_tail t
                ON t.stream_id = n.stream_id AND t.segment_id = n.segment_id
            WHERE p.group_id = :g
            ORDER BY 1, 2"""
        ),
        {"g": group.group_id, "most": MOST_SEGMENTS_AHEAD},
    )
    graph: dict[int, list[SegmentState]] = {}
    for r in rows:
        graph.setdefault(r[0], []).append(SegmentState(Segment(r[1], r[2], r[3]), r[5], r[4]))
    return graph


def advance(
    connection: Connection, group: LockedGroup, bounds: Sequence[Bound], reader_id: str
) -> None:
    """Move the positions to the ends of `bounds`; completed segments give way to successors.

    A segment is ready when nothing of the group that is unread lies before it: no position of a
    smaller id overlaps it.
    """
    positions = read_positions(connection, group)
    graph = read_graph(connection, group)
    states = {(s, st.segment.segment_id): st for s, all_ in graph.items() for st in all_}
    moved = {(b.stream_id, b.segment_id): b.end for b in bounds if not b.completes}
    done = {(b.stream_id, b.segment_id) for b in bounds if b.completes}
    # What is listed after the batch: what was and is not done, plus the successors of the done.
    listed: dict[tuple[int, int], Segment] = {
        (p.stream_id, p.segment.segment_id): p.segment
        for p in positions
        if (p.stream_id, p.segment.segment_id) not in done
    }
    known = dict.fromkeys(listed)
    for stream_id, segment_id in done:
        for successor in successors(states[stream_id, segment_id], graph[stream_id]):
            key = (stream_id, successor.segment.segment_id)
            if key not in done:
                listed[key] = successor.segment
    ready = {
        key
        for key, segment in listed.items()
        if not any(
            other[0] == key[0] and other[1] < key[1] and listed[other].overlaps(segment)
            for other in listed
        )
    }
    waiting = {
        (p.stream_id, p.segment.segment_id) for p in positions if p.next_offset is None
    } & listed.keys()
    # New rows, future ones that became ready, and the segments that the batch read in part.
    changed = [key for key in listed if key not in known or (key in waiting and key in ready)]
    changed += [key for key in moved if key not in changed]
    connection.execute(
        text(
            """WITH noted AS (
                UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :g
            ), passed AS (
                DELETE FROM reader_group_segment p
                USING unnest(CAST(:done_streams AS bigint[]), CAST(:done_segments AS bigint[]))
                    AS d (stream_id, segment_id)
                WHERE p.group_id = :g AND p.stream_id = d.stream_id
                  AND p.segment_id = d.segment_id
            )
            INSERT INTO reader_group_segment AS p (group_id, stream_id, segment_id, state,
                                                   next_offset, reader_id)
            SELECT :g, m.stream_id, m.segment_id,
                   CASE WHEN m.next_offset IS NULL THEN 'future'
                        WHEN m.mine THEN 'assigned' ELSE 'unassigned' END,
                   m.next_offset, CASE WHEN m.mine THEN r.reader_id END
            FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                        CAST(:offsets AS bigint[]), CAST(:mine AS boolean[]))
                AS m (stream_id, segment_id, next_offset, mine)
            LEFT JOIN reader r ON r.group_id = :g AND r.reader_id = :reader_id
            ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
                state = excluded.state, next_offset = excluded.next_offset,
                reader_id = excluded.reader_id, batch_id = NULL"""
        ),
        {
            "g": group.group_id,
            "reader_id": reader_id,
            "done_streams": [key[0] for key in done],
            "done_segments": [key[1] for key in done],
            "streams": [key[0] for key in changed],
            "segments": [key[1] for key in changed],
            "offsets": [moved.get(key, 0 if key in ready else None) for key in changed],
            "mine": [key in moved for key in changed],
        },
    )
