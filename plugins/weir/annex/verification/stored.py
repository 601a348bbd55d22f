"""Ask the database what it records of the files of a stream, part by part."""

from sqlalchemy import Connection

from weir.annex.verification.recorded import Columns, Commit, File, Unit, units_of
from weir.queries.annex.verification import stored as sql

BEGIN = (-1, -1)  # where a stream begins: before its first segment


def columns_of(connection: Connection, stream_id: int) -> Columns | None:
    """Return what is recorded of a stream; None if it was deleted."""
    if (found := sql.stream(connection, stream_id=stream_id)) is None:
        return None
    versions = sql.versions(connection, stream_id=stream_id)
    by_version = {one.version: one.fields for one in versions}
    return Columns(stream_id, found.stream_name, found.routing_key, by_version)


def next_units(
    connection: Connection, stream_id: int, after: tuple[int, int], most: int
) -> tuple[list[Unit], bool]:
    """Return the units of about `most` files of a stream after a file (segment id, offset), and
    whether these are all that are left. Call it in a snapshot."""
    segment, offset = after
    while True:
        files = sql.files_after(
            connection, stream_id=stream_id, segment=segment, offset=offset, most=most + 1
        )
        last = len(files) <= most
        files = files[:most]
        if not files:
            return [], True
        units = units_of(files, commits_of(connection, stream_id, files[0], files[-1]))
        if last:
            return units, True
        if len(units) > 1:  # the last one may continue
            return units[:-1], False
        most *= 2


def commits_of(
    connection: Connection, stream_id: int, first: File, last: File | None = None
) -> list[Commit]:
    """Return the commits of the events of a file, or from one file to another."""
    last = last or first
    return sql.commits(
        connection, stream_id=stream_id, low=first.segment_id, first=first.start_offset,
        high=last.segment_id, past=last.end,
    )  # fmt: skip
