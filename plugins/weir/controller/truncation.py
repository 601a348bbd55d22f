"""Truncation: the head moves, exact to the event; files wholly below it become garbage."""

import json
import re
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import check_cut, load_cuts
from weir.controller.locks import LockedStream, lock_groups_of, lock_stream
from weir.controller.requests import Request
from weir.errors import InvalidInput
from weir.names import StreamName
from weir.retention.due import soon
from weir.segment import Segment, parse_segment_name
from weir.storage import Database
from weir.stream_cut import StreamCut, first_behind


@dataclass(frozen=True)
class Freed:
    """What a move of the head freed."""

    events: int
    bytes: int  # as first committed
    files: int


def truncate(database: Database, name: StreamName, cut: str, *, request_id: str) -> dict[str, Any]:
    """Move the head to `cut` (`0.0=12, 5.1=future`, or JSON).

    Raises InvalidInput for a cut that is not valid or lies behind the head, saying which segment.
    """
    request = Request(request_id, "truncate", str(name), {"cut": cut})

    def work(connection: Connection) -> dict[str, Any]:
        stream = lock_stream(connection, name)
        # Nobody plans a batch from the old head and opens it when its files are dead already.
        lock_groups_of(connection, stream)
        if (before := request.result(connection)) is not None:
            return before
        stream.must_be_active()
        wanted = parse_cut(connection, stream, cut)
        check_cut(connection, stream.stream_id, wanted)
        (head,) = load_cuts(connection, stream.stream_id, stream.head)
        if (behind := first_behind(head, wanted)) is not None:
            began = head.offsets.get(behind, "after it")
            raise InvalidInput(
                f"the cut lies behind the head of stream {name} in segment {behind.name}: it has "
                f"{wanted.offsets[behind]} there, and the head is at {began}; the head only moves "
                "forward."
            )
        freed = move_head(connection, stream, wanted)
        soon(connection, [stream.stream_id])
        return request.done(
            connection, {"stream": str(name), "head": wanted.to_json(), **freed.__dict__}
        )

    return database.transaction(work)


def parse_cut(connection: Connection, stream: LockedStream, given: str) -> StreamCut:
    """A cut that a person typed. Raises InvalidInput naming the segment that isn't there."""
    names = set(re.findall(r"\d+\.\d+", given))
    rows = connection.execute(
        text(
            """SELECT segment_id, key_low, key_high FROM segment
            WHERE stream_id = :s AND segment_id = ANY(:ids)"""
        ),
        {"s": stream.stream_id, "ids": sorted({parse_segment_name(name) for name in names})},
    )
    return StreamCut.parse(given, {row.segment_id: Segment(*row) for row in rows})


def move_head(connection: Connection, stream: LockedStream, cut: StreamCut) -> Freed:
    """The same in a transaction that has locked the stream and checked the cut."""
    row = connection.execute(
        text(
            """WITH below AS (
                DELETE FROM data_file f USING segment s, front(:s, CAST(:cut AS jsonb)) n
                WHERE f.stream_id = :s AND s.stream_id = :s AND s.segment_id = f.segment_id
                  AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
                  AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                                 f.start_offset + f.events)
                RETURNING f.path, f.bytes
            ), dead AS (
                INSERT INTO garbage (root, path, stream_id, reason, bytes)
                SELECT '', path, :s, 'truncated', bytes FROM below
            ), moved AS (
                UPDATE stream SET head = CAST(:cut AS jsonb) WHERE stream_id = :s
            )
            SELECT n.events - o.events, n.bytes - o.bytes, (SELECT count(*) FROM below)
            FROM size_till(:s, CAST(:cut AS jsonb)) n, size_till(:s, CAST(:head AS jsonb)) o"""
        ),
        {
            "s": stream.stream_id,
            "cut": json.dumps(cut.to_json()),
            "head": json.dumps(stream.head),
        },
    ).one()
    return Freed(*row)
