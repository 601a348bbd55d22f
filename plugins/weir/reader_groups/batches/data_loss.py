"""Handle data loss: events that were truncated before a group read them."""

import json
import logging

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.missing import missing_after
from weir.errors import NotFound, Truncated
from weir.front_ends import do
from weir.model.stream_cut import StreamCut, at_or_before, join
from weir.queries.reader_groups.batches import data_loss as sql
from weir.reader_groups.locks import LockedGroup

log = logging.getLogger("weir.truncation")


def skip_gaps(connection: Connection, group: LockedGroup) -> None:
    """Move positions that lie below the head to the head, and count the events lost by that.

    Positions move only forward, except by a reset, so each new head needs one check. Raises
    Truncated if events are lost and the group's on_gap is fail; NotFound if a stream was deleted.
    """
    rows = sql.moved_heads(connection, group_id=group.group_id)
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
        sql.skip(
            connection,
            lost=missing.events if missing else 0,
            group_id=group.group_id,
            stream_id=row.stream_id,
            cut=json.dumps(join(cut, head).to_json()),
        )
    sql.seen(
        connection,
        group_id=group.group_id,
        streams=[row.stream_id for row in rows],
        heads=[json.dumps(row.head) for row in rows],
    )


def unread_events_lost(
    connection: Connection, stream: LockedStream, cut: StreamCut, *, subscribers: bool = True
) -> dict[str, int]:
    """Return per subscriber how many events between the head and the cut it has not read.

    Events count even if the subscriber has released them by hand without reading them. With
    `subscribers` false, return the same for groups that are not subscribers.
    """
    return sql.unread_lost(
        connection,
        stream_id=stream.stream_id,
        cut=json.dumps(cut.to_json()),
        subscribers=subscribers,
    )


def warn_of_lost(stream: LockedStream, lost: dict[str, int], reason: str) -> None:
    """Log which subscriber loses how many events."""
    for name, events in lost.items():
        log.warning("subscriber %s loses %s unread events of stream %s (%s)", name, f"{events:,}",
                    stream.name, reason)  # fmt: skip
