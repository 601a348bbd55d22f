"""What is recorded of files that could not be read. Made by `make queries` from sql/queries/controller/absent_files.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.segment import Segment

SIZE = text("""SELECT bytes FROM data_file WHERE stream_id = :stream_id AND path = :path""")


def size(connection: Connection, *, stream_id: int, path: str) -> int | None:
    """Return the bytes of a file of a stream."""
    result = connection.execute(SIZE, {"stream_id": stream_id, "path": path})
    value: int | None = result.scalar_one_or_none()
    return value


STREAM = text(
    """SELECT stream_name AS name, head, state FROM stream WHERE stream_id = :stream_id"""
)


class Stream(NamedTuple):
    """A row of `stream`."""

    name: str
    head: dict[str, int | str]
    state: str


def stream(connection: Connection, *, stream_id: int) -> Stream | None:
    """Return a stream's name, head and state."""
    result = connection.execute(STREAM, {"stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Stream._make(row)


FILES = text(
    """SELECT segment_id, start_offset, start_offset + events AS end_offset FROM data_file
WHERE stream_id = :stream_id AND path = ANY(:paths)"""
)


class Files(NamedTuple):
    """A row of `files`."""

    segment_id: int
    start_offset: int
    end_offset: int


def files(connection: Connection, *, stream_id: int, paths: Sequence[str]) -> list[Files]:
    """Return which events files have."""
    result = connection.execute(FILES, {"stream_id": stream_id, "paths": list(paths)})
    return [Files._make(row) for row in result]


SEGMENTS = text(
    """SELECT segment_id, key_low, key_high FROM segment WHERE stream_id = :stream_id"""
)


def segments(connection: Connection, *, stream_id: int) -> list[Segment]:
    """Return all segments of a stream."""
    result = connection.execute(SEGMENTS, {"stream_id": stream_id})
    return [Segment._make(row) for row in result]
