"""Truncation: moving the head, exact to the event (semantics 10). Files wholly below it become
garbage.
"""

import json
import logging
import re
from dataclasses import dataclass

from sqlalchemy import Connection, text

from weir.controller.cuts import check_not_pruned, segments_named
from weir.controller.locks import LockedStream
from weir.model.segment import parse_segment_name
from weir.model.stream_cut import StreamCut

log = logging.getLogger("weir.truncation")


@dataclass(frozen=True)
class Freed:
    """What a move of the head truncated, and how many files became garbage."""

    events: int
    bytes: int  # as first committed
    files: int


def parse_cut(connection: Connection, stream: LockedStream, given: str) -> StreamCut:
    """Return the cut that a person typed. Raises InvalidInput naming a segment that does not exist,
    and Truncated for one whose metadata was pruned."""
    names = re.findall(r"[0-9]+\.[0-9]+", given)
    segments = segments_named(connection, stream.stream_id, names)
    if unknown := {parse_segment_name(name) for name in names} - segments.keys():
        check_not_pruned(connection, stream.stream_id, unknown)
    return StreamCut.parse(given, segments)


# The files wholly below a cut.
_BELOW = """segment s, front(:s, CAST(:cut AS jsonb)) n
    WHERE f.stream_id = :s AND s.stream_id = :s AND s.segment_id = f.segment_id
      AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
      AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                     f.start_offset + f.events)"""


def files_below(connection: Connection, stream: LockedStream, cut: StreamCut) -> int:
    """Return how many files a move of the head to a cut would make garbage of."""
    count: int = connection.execute(
        text(f"SELECT count(*) FROM data_file f, {_BELOW}"),  # noqa: S608 - a constant
        {"s": stream.stream_id, "cut": json.dumps(cut.to_json())},
    ).scalar_one()
    return count


def move_head(connection: Connection, stream: LockedStream, cut: StreamCut) -> Freed:
    """Move the head of a locked stream to a checked cut, and return what was truncated."""
    row = connection.execute(
        text(
            f"""WITH below AS (
                DELETE FROM data_file f USING {_BELOW}
                RETURNING f.path, f.bytes, f.events - f.erased AS rows, f.end_hash
            ), freed AS (
                INSERT INTO garbage (root, path, stream_id, reason, bytes, rows, end_hash)
                SELECT '', path, :s, 'truncated', bytes, rows, end_hash FROM below
            ), moved AS (
                UPDATE stream SET head = CAST(:cut AS jsonb) WHERE stream_id = :s
            )
            SELECT n.events - o.events, n.bytes - o.bytes, (SELECT count(*) FROM below)
            FROM size_till(:s, CAST(:cut AS jsonb)) n, size_till(:s, CAST(:head AS jsonb)) o"""  # noqa: S608 - a constant
        ),
        {
            "s": stream.stream_id,
            "cut": json.dumps(cut.to_json()),
            "head": json.dumps(stream.head),
        },
    ).one()
    return Freed(*row)
