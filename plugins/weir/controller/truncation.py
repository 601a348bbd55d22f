"""Truncation: moving the head, exact to the event (semantics 10). Files wholly below it become
garbage.
"""

import json
import re

from sqlalchemy import Connection

from weir.controller.cuts import check_not_pruned, segments_named
from weir.controller.locks import LockedStream
from weir.model.segment import parse_segment_name
from weir.model.stream_cut import StreamCut
from weir.queries.controller import truncation as sql


def parse_cut(connection: Connection, stream: LockedStream, given: str) -> StreamCut:
    """Return the cut that a person typed. Raises InvalidInput naming a segment that does not exist,
    and Truncated for one whose metadata was pruned."""
    names = re.findall(r"[0-9]+\.[0-9]+", given)
    segments = segments_named(connection, stream.stream_id, names)
    if unknown := {parse_segment_name(name) for name in names} - segments.keys():
        check_not_pruned(connection, stream.stream_id, unknown)
    return StreamCut.parse(given, segments)


def files_below(connection: Connection, stream: LockedStream, cut: StreamCut) -> int:
    """Return how many files a move of the head to a cut would make garbage of."""
    return sql.files_below(connection, stream_id=stream.stream_id, cut=json.dumps(cut.to_json()))


def move_head(connection: Connection, stream: LockedStream, cut: StreamCut) -> sql.Freed:
    """Move the head of a locked stream to a checked cut, and return what was truncated."""
    to, head = json.dumps(cut.to_json()), json.dumps(stream.head)
    return sql.move_head(connection, stream_id=stream.stream_id, cut=to, head=head)
