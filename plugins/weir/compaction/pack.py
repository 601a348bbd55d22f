"""Pack old entries of the time index: a row for some thousand commits to a segment.

No answer changes (sql/functions/commits.sql), so this needs no lease: each piece is one transaction
under the stream's lock.
"""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import NotRequired, TypedDict

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.compaction import pack as sql

MOST = 4096  # commits in a row, and in a transaction; to look one up, Postgres decompresses them


class Packed(TypedDict):
    """How many commits of a stream were packed, or the `error` with which that failed."""

    stream: str
    commits: NotRequired[int]
    error: NotRequired[str]


def pack(database: Database, age: float, seconds: float, most: int = MOST) -> list[Packed]:
    """Pack the commits that are older than `age` seconds, `most` into a row.

    After `seconds` it begins no further piece. A stream that fails does not stop the others.
    """
    until = time.monotonic() + seconds
    found = database.snapshot(lambda c: sql.to_pack(c, age=age, most=most))
    reports: list[Packed] = []
    for (stream_id, stream), rows in groupby(found, lambda row: (row.stream_id, row.stream)):
        one = partial(_stream, database, stream_id, list(rows), until, most)
        done, failed = database.one_of_many(f"stream {stream}", one)
        if failed:
            reports.append({"stream": stream, "error": failed})
        elif done:
            reports.append({"stream": stream, "commits": done})
    return reports


def _stream(
    database: Database, stream_id: int, rows: Sequence[sql.ToPack], until: float, most: int
) -> int:
    """Pack the commits of a stream, piece by piece. Returns how many."""
    done = 0
    for piece in _pieces(rows, most):
        if time.monotonic() >= until:
            break
        packing = partial(
            sql.pack, stream_id=stream_id, segments=piece, before=rows[0].before, most=most
        )
        done += commit_once(database, packing)
    return done


def _pieces(rows: Sequence[sql.ToPack], most: int) -> Iterator[list[int]]:
    """Yield the segments whose commits are packed in one transaction; a segment with many of them
    again and again."""
    piece: list[int] = []
    size = 0
    for row in rows:
        left, room = row.commits, row.room
        while left > 0:
            if row.segment_id in piece[-1:] or size >= most:
                yield piece
                piece, size = [], 0
            piece.append(row.segment_id)
            size += min(left, room)
            left, room = left - room, most
    if piece:
        yield piece
