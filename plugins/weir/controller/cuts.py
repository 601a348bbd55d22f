"""Stream cuts as the database has them: loaded with their key ranges, and checked."""

import json
from collections.abc import Iterable, Mapping, Set

from sqlalchemy import Connection

from weir.errors import Truncated
from weir.model.segment import Segment, parse_segment_name, segment_name
from weir.model.stream_cut import StreamCut, check_valid, read_entries
from weir.queries.controller import cuts as sql


def load_cuts(
    connection: Connection, stream_id: int, *cuts: Mapping[str, int | str]
) -> list[StreamCut]:
    """Return cuts in their JSON form as values, with one statement for all.

    Raises InvalidInput for what is no cut, and for a segment that does not exist, and Truncated for
    one whose metadata was pruned.
    """
    wanted = {segment_id for cut in cuts for segment_id in read_entries(cut)}
    segments = segments_named(connection, stream_id, map(segment_name, wanted))
    if unknown := wanted - segments.keys():
        check_not_pruned(connection, stream_id, unknown)
    return [StreamCut.from_json(cut, segments) for cut in cuts]


def segments_named(
    connection: Connection, stream_id: int, names: Iterable[str]
) -> dict[int, Segment]:
    """Return the segments with these names, as far as they exist. Raises InvalidInput for a bad
    name.
    """
    ids = sorted({parse_segment_name(name) for name in names})
    return {s.segment_id: s for s in sql.segments(connection, ids=ids, stream_id=stream_id)}


def check_not_pruned(connection: Connection, stream_id: int, unknown: Set[int]) -> None:
    """Raise Truncated if one of the unknown segments existed and its metadata was pruned.

    A segment is pruned with the epoch that created it. Its name alone shows that it existed: its
    number was given out, and its epoch is older than those that are left.
    """
    row = sql.history_left(connection, stream_id=stream_id)
    for segment in sorted(Segment(segment_id, 0.0, 1.0) for segment_id in unknown):
        if segment.number < row.next_segment_number and segment.epoch < (row.first_epoch or 0):
            raise Truncated(
                "events_truncated",
                f"segment {segment.name} of stream {row.stream} was truncated and its metadata "
                f"was pruned, so the events lost after this cut can't be counted{row.last or ''}; "
                f"start at the head, {json.dumps(row.head)}, or later.",
            )


def check_cut(connection: Connection, stream_id: int, cut: StreamCut) -> None:
    """Check that a cut is valid (semantics 9.3). Raises InvalidInput with the segment and the
    reason.
    """
    ids = [segment.segment_id for segment in cut.offsets]
    rows = sql.around(connection, ids=ids, stream_id=stream_id)
    ends = {row.segment_id: row.end_offset for row in rows if row.end_offset is not None}
    check_valid(cut, [Segment(*row[:3]) for row in rows], ends)
