"""Handle data loss: events that were truncated before a group read them."""

import json
import logging

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.missing import missing_after
from weir.errors import NotFound, Truncated
from weir.front_ends import do
from weir.model.stream_cut import StreamCut, at_or_before, join
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.positions import MOVED, placed, placing

log = logging.getLogger("weir.truncation")

_CUT = "(SELECT CAST(:s AS bigint) AS stream_id, CAST(:cut AS jsonb) AS cut)"
_PLACE, _PLACED = placing(_CUT), placed(_CUT, "skipped")


def skip_gaps(connection: Connection, group: LockedGroup) -> None:
    """Move positions that lie below the head to the head, and count the events lost by that.

    Positions move only forward, except by a reset, so each new head needs one check. Raises
    Truncated if events are lost and the group's on_gap is fail; NotFound if a stream was deleted.
    """
    rows = connection.execute(
        text(
            """SELECT gs.stream_id, s.stream_name AS stream, s.head,
                      group_cut(gs.group_id, gs.stream_id) AS cut, gs.end_cut, s.state
            FROM reader_group_stream gs JOIN stream s USING (stream_id)
            WHERE gs.group_id = :g AND gs.head_seen IS DISTINCT FROM s.head AND NOT EXISTS (
                SELECT FROM held_segments(:g) h WHERE h.stream_id = gs.stream_id)"""
        ),
        {"g": group.group_id},
    ).all()
    if not rows:
        return
    for row in rows:
        if row.state == "deleted":
            raise NotFound(
                "stream_deleted",
                f"stream {row.stream}, which reader group {group.name} reads, was deleted (a "
                "stream created since with this name is another one); to take it out of "
                "the group, "
                f"{do('update_reader_group', reader_group=group.name, streams=['STREAM'])} with "
                "each stream that the group is to read, or delete the group.",
            )
        head, cut = load_cuts(connection, row.stream_id, row.head, row.cut)
        if at_or_before(head, cut):
            continue
        # Between the end of a sealed segment and the start of its successors lies no event.
        missing = missing_after(connection, row.stream_id, row.cut, row.end_cut)
        if missing is not None and group.configuration.on_gap == "fail":
            raise Truncated(
                "events_truncated",
                f"{missing}, before reader group {group.name} read them (its position is "
                f"{cut.to_text()}, the head is {head.to_text()}); to count them as lost and "
                "continue at the head, "
                f"{do('update_reader_group', reader_group=group.name, on_gap='skip')}.",
            )
        connection.execute(
            text(
                f"""WITH {MOVED}, counted AS (
                    UPDATE reader_group_stream SET lost_events = lost_events + :lost,
                        passed_clock = least(passed_clock, clock_between(
                            :s, group_cut(:g, :s), CAST(:cut AS jsonb)))
                    WHERE group_id = :g AND stream_id = :s
                ), placed AS (
                    {_PLACED}
                ), passed AS (
                    DELETE FROM reader_group_segment WHERE group_id = :g AND stream_id = :s
                    AND segment_id NOT IN (SELECT segment_id FROM cut_entries(CAST(:cut AS jsonb)))
                )
                {_PLACE}
                ON CONFLICT (group_id, stream_id, segment_id) DO UPDATE SET
                    state = CASE WHEN excluded.state = 'unassigned'
                                 AND reader_group_segment.state = 'assigned'
                            THEN 'assigned' ELSE excluded.state END,
                    next_offset = excluded.next_offset"""  # noqa: S608 - constant
            ),
            {
                "lost": missing.events if missing else 0,
                "g": group.group_id,
                "s": row.stream_id,
                "cut": json.dumps(join(cut, head).to_json()),
            },
        )
    connection.execute(
        text(
            """UPDATE reader_group_stream gs SET head_seen = CAST(h.head AS jsonb)
            FROM unnest(CAST(:streams AS bigint[]), CAST(:heads AS text[])) AS h (stream_id, head)
            WHERE gs.group_id = :g AND gs.stream_id = h.stream_id"""
        ),
        {
            "g": group.group_id,
            "streams": [row.stream_id for row in rows],
            "heads": [json.dumps(row.head) for row in rows],
        },
    )


def unread_events_lost(
    connection: Connection, stream: LockedStream, cut: StreamCut, *, subscribers: bool = True
) -> dict[str, int]:
    """Return per subscriber how many events between the head and the cut it has not read.

    Events count even if the subscriber has released them by hand without reading them. With
    `subscribers` false, return the same for groups that are not subscribers.
    """
    lost: dict[str, int] = connection.execute(
        text("SELECT unread_events_lost(:s, CAST(:cut AS jsonb), :subscribers)"),
        {
            "s": stream.stream_id,
            "cut": json.dumps(cut.to_json()),
            "subscribers": subscribers,
        },
    ).scalar_one()
    return lost


def warn_of_lost(stream: LockedStream, lost: dict[str, int], reason: str) -> None:
    """Log which subscriber loses how many events."""
    for name, events in lost.items():
        log.warning("subscriber %s loses %s unread events of stream %s (%s)", name, f"{events:,}",
                    stream.name, reason)  # fmt: skip
