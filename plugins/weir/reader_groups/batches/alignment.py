"""Close the streams of an aligned group at one clock, so that its batches end at a moment of which
one can say: everything up to here is in.

The streams are closed once per run. They are locked for two statements only: an append to one of
them waits that long, and no longer.
"""

from collections.abc import Mapping

from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.errors import Conflict
from weir.queries.reader_groups.batches import alignment as sql
from weir.reader_groups.group_streams import group_streams, group_tails
from weir.reader_groups.locks import LockedGroup


def end_of_run(connection: Connection, name: str) -> tuple[dict[int, Cut], int | None]:
    """Return by stream id how far a run of a group reads; and if the group is aligned, the clock at
    which its streams are closed from now on.

    No commit gets a clock at or before that any more, and all that have one are visible.
    """
    if not sql.is_aligned(connection, name=name):
        return group_tails(connection, name), None
    ids = [s.stream_id for s in group_streams(connection, name) if s.exists]
    closed = sql.close(connection, ids=ids)
    tails = group_tails(connection, name)
    return {stream_id: tails[stream_id] for stream_id in ids if stream_id in tails}, closed


def check_closed(
    connection: Connection, group: LockedGroup, closed: int | None, until: Mapping[int, Cut]
) -> None:
    """Check that all streams of an aligned group were closed. Raises Conflict if the group was
    changed since."""
    reads = {s.stream_id for s in group_streams(connection, group.name) if s.exists}
    if closed is None or not reads <= until.keys():
        raise Conflict(
            "group_changed", f"reader group {group.name} was changed at the same time; try again."
        )
