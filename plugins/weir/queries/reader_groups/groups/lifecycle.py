"""Groups: created and deleted, what they own and where they end. Made by `make queries` from sql/queries/reader_groups/groups/lifecycle.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

INSERT = text(
    """INSERT INTO reader_group (name, subscriber, on_gap, release, time_out, max_outstanding, aligned, max_ahead, owner, subject)
VALUES (:name, :subscriber, :on_gap, :release, :time_out, :max_outstanding, :aligned, :max_ahead, :owner,
    :subject)
ON CONFLICT (name) DO NOTHING RETURNING group_id"""
)


def insert(
    connection: Connection,
    *,
    name: str,
    subscriber: bool,
    on_gap: str,
    release: str,
    time_out: int | None,
    max_outstanding: int,
    aligned: bool,
    max_ahead: int | None,
    owner: str | None,
    subject: str,
) -> int | None:
    """Record a group, and return its id; None if the name is taken."""
    result = connection.execute(
        INSERT,
        {
            "name": name,
            "subscriber": subscriber,
            "on_gap": on_gap,
            "release": release,
            "time_out": time_out,
            "max_outstanding": max_outstanding,
            "aligned": aligned,
            "max_ahead": max_ahead,
            "owner": owner,
            "subject": subject,
        },
    )
    value: int | None = result.scalar_one_or_none()
    return value


ENTER = text(
    """WITH cuts AS (
    INSERT INTO reader_group_stream (group_id, stream_id, start_cut, end_cut,
                                     released_cut, released_at, subscriber_since,
                                     passed_clock)
    SELECT :group_id, c.stream, c.start_cut, c.end_cut,
           CASE WHEN :subscriber THEN c.start_cut END,
           CASE WHEN :subscriber THEN clock_timestamp() END,
           CASE WHEN :subscriber THEN clock_timestamp() END,
           clock_between(s.stream_id, s.head, c.start_cut)
    FROM jsonb_to_recordset(CAST(:cuts AS jsonb))
        AS c (stream bigint, start_cut jsonb, end_cut jsonb)
    JOIN stream s ON s.stream_id = c.stream
    RETURNING stream_id, start_cut AS cut
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM cuts JOIN stream USING (stream_id)
    WHERE state = 'active'
), placed AS (
    INSERT INTO placement AS p (group_id, stream_id, group_name, number, cause, left_at, cut)
SELECT :group_id, c.stream_id, (SELECT name FROM reader_group WHERE group_id = :group_id),
       CASE WHEN l.cause = 'entered' AND l.cause = 'moved' THEN l.number
       ELSE coalesce(l.number, 0) + 1 END, 'entered', group_cut(:group_id, c.stream_id), c.cut
FROM cuts c LEFT JOIN LATERAL (
    SELECT o.number, CASE WHEN NOT EXISTS (
        SELECT FROM delivered_range d WHERE d.group_id = :group_id
        AND d.stream_id = c.stream_id AND d.placement = o.number) AND NOT EXISTS (
            SELECT FROM (SELECT truncated_at FROM truncation
                         WHERE stream_id = c.stream_id ORDER BY number DESC LIMIT 1) t
            WHERE t.truncated_at >= o.placed_at) THEN o.cause END AS cause
    FROM placement o WHERE o.group_id = :group_id AND o.stream_id = c.stream_id
    ORDER BY o.number DESC LIMIT 1) l ON true
ON CONFLICT (group_id, stream_id, number) DO UPDATE SET
    cut = excluded.cut, placed_at = excluded.placed_at
)
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT :group_id, c.stream_id, e.segment_id,
       CASE WHEN e.event_offset IS NULL THEN 'future' ELSE 'unassigned' END, e.event_offset
FROM cuts c CROSS JOIN LATERAL cut_entries(c.cut) e"""
)


def enter(connection: Connection, *, group_id: int, subscriber: bool, cuts: str) -> None:
    """Add streams to a group, and its positions at their cuts."""
    result = connection.execute(
        ENTER, {"group_id": group_id, "subscriber": subscriber, "cuts": cuts}
    )
    result.close()


OWNED = text(
    """SELECT (SELECT coalesce(jsonb_object_agg(s.stream_name, group_cut(gs.group_id, gs.stream_id)), '{}')
    FROM reader_group_stream gs JOIN stream s USING (stream_id)
    WHERE gs.group_id = :group_id AND s.state <> 'deleted') AS position,
(SELECT count(*) FROM checkpoint WHERE group_id = :group_id) AS checkpoints,
(SELECT count(*) FROM reader_batch WHERE group_id = :group_id AND state = 'open')
    AS batches"""
)


class Owned(NamedTuple):
    """A row of `owned`."""

    position: dict[str, Cut]
    checkpoints: int
    batches: int


def owned(connection: Connection, *, group_id: int) -> Owned:
    """Return the positions of a group by stream, and how many checkpoints and open batches it has."""
    result = connection.execute(OWNED, {"group_id": group_id})
    row = result.one()
    return Owned._make(row)


DELETE = text(
    """WITH positions AS (DELETE FROM reader_group_segment WHERE group_id = :group_id),
batches AS (
    DELETE FROM reader_batch WHERE group_id = :group_id RETURNING group_id, batch_id, bounds
), inputs AS (
    DELETE FROM batch_input n USING batches b CROSS JOIN LATERAL inputs_of(b.bounds) i
    WHERE (n.stream_id, n.segment_id, n.size_class, n.from_offset)
          = (i.stream_id, i.segment_id, i.size_class, i.from_offset)
      AND (n.group_id, n.batch_id) = (b.group_id, b.batch_id)
),
readers AS (DELETE FROM reader WHERE group_id = :group_id),
checkpoints AS (DELETE FROM checkpoint WHERE group_id = :group_id),
streams AS (DELETE FROM reader_group_stream WHERE group_id = :group_id)
DELETE FROM reader_group WHERE group_id = :group_id"""
)


def delete(connection: Connection, *, group_id: int) -> None:
    """Delete a group with what belongs to it."""
    result = connection.execute(DELETE, {"group_id": group_id})
    result.close()


ENDS = text(
    """SELECT stream_id, end_cut FROM reader_group_stream
WHERE group_id = :group_id AND end_cut IS NOT NULL"""
)


class End(NamedTuple):
    """A row of `ends`."""

    stream_id: int
    end_cut: Cut


def ends(connection: Connection, *, group_id: int) -> list[End]:
    """Return the ends of a group."""
    result = connection.execute(ENDS, {"group_id": group_id})
    return [End._make(row) for row in result]


AT_END = text(
    """SELECT string_agg(l.stream, ', ' ORDER BY l.stream) FROM lag l
WHERE l.reader_group = :name AND l.stream_id <> ALL(:not_delivered)
HAVING bool_and(l.at_end)"""
)


def at_end(connection: Connection, *, name: str, not_delivered: Sequence[int]) -> str | None:
    """Return the streams of a group if it is at the end of all of them, but for those not delivered."""
    result = connection.execute(AT_END, {"name": name, "not_delivered": list(not_delivered)})
    value: str | None = result.scalar_one_or_none()
    return value
