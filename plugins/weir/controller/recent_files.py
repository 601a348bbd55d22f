"""Which files have the recent events of parts of the key space. One statement for all streams."""

import json
from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import Connection

from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.queries.controller import recent_files as sql


class Part(NamedTuple):
    """A range of the keys of a stream. Its recent events are those with a clock after `since`."""

    stream_id: int
    key_low: float
    key_high: float
    since: int


class RecentFile(NamedTuple):
    """A file with recent events of a segment that shares keys with a part.

    `events`, `bytes`: of what is recent in it. `since`: if only a part of a file of several commits
    is: what has a later clock."""

    path: str  # below the warehouse
    segment_id: int
    key_low: float
    key_high: float
    events: int
    bytes: int
    first_seq: int
    since: int | None


class RecentFiles(NamedTuple):
    """The files of a stream, and what it takes to compute its routing key from them."""

    stream_id: int
    stream: StreamName
    routing_key: str
    on_missing_key: str
    fields: list[Field]
    files: tuple[RecentFile, ...]


def recent_files(connection: Connection, parts: Iterable[Part]) -> list[RecentFiles]:
    """Return the files with recent events of parts of streams, for each stream that has any.

    A segment that shares keys with a part may be older than those that are active now: a
    predecessor, the original of a copy that a roll made, or the segment of a transaction that began
    before a split. If the parts of a stream have several times, the earliest holds for all of them.
    """
    rows = sql.recent_files(connection, parts=json.dumps([part._asdict() for part in parts]))
    return [
        RecentFiles(
            row.stream_id, stream_name(row.stream), row.routing_key, row.on_missing_key,
            list(row.fields or []), tuple(RecentFile(*file) for file in row.files),
        )
        for row in rows
    ]  # fmt: skip
