"""Say which events are lost with the files that are missing, who has not read them, and how their
streams go on."""

from collections import defaultdict
from collections.abc import Sequence
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.absent_files import Lost, lost_events, named
from weir.model.segment import Segment
from weir.model.stream_cut import FUTURE, Offset, StreamCut
from weir.queries.annex.recovery import lost_events as sql
from weir.warehouse.paths import ADJUNCT


class LostReport(TypedDict):
    """A stream that misses files: `segments` (which, and up to which offset), `unread_by` (the
    reader groups that have not read all of them), `truncate_to` (the smallest cut past them) and
    `then` (what to do)."""

    stream: str
    files: int
    events: int
    segments: str
    unread_by: list[str]
    truncate_to: str
    then: str


def lost_in(connection: Connection, paths: Sequence[str]) -> list[LostReport]:
    """Return what is lost of each stream that misses files."""
    by_stream: dict[int, list[str]] = defaultdict(list)
    for path in paths:
        if not path.startswith(ADJUNCT):
            by_stream[int(path.partition("/")[0])].append(path)
    report = list[LostReport]()
    for stream_id, of_stream in sorted(by_stream.items()):
        lost = lost_events(connection, stream_id, of_stream)
        if lost is None:  # they lie before the head, where nobody reads
            continue
        report.append(
            {
                "stream": lost.stream, "files": lost.files, "events": lost.events,
                "segments": named(lost), "unread_by": _unread_by(connection, stream_id, lost),
                "truncate_to": lost.cut.to_text(), "then": lost.then,
            }
        )  # fmt: skip
    return report


def _unread_by(connection: Connection, stream_id: int, lost: Lost) -> list[str]:
    """Return the reader groups that have lost events before them."""
    positions: dict[str, dict[Segment, Offset]] = defaultdict(dict)
    for row in sql.positions(connection, stream_id=stream_id):
        segment = Segment(row.segment_id, row.key_low, row.key_high)
        positions[row.name][segment] = FUTURE if row.next_offset is None else row.next_offset
    return [name for name, at in sorted(positions.items()) if not _past(StreamCut(at), lost)]


def _past(position: StreamCut, lost: Lost) -> bool:
    """Return whether a position is past all lost events."""
    at = {segment.segment_id: offset for segment, offset in position.offsets.items()}
    for segment in lost.segments:
        offset = at.get(segment.segment_id, 0)
        end = lost.ends[segment.segment_id]
        if position.contains(segment) and (offset is FUTURE or offset < end):
            return False
    return True
