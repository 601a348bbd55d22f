"""Say why a file of the warehouse could not be read, and how a stream goes on without it.

Nothing is asked before a read has failed: a read that succeeds costs no look at what is there.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyarrow import fs
from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.ownership import check_marker, read_installation
from weir.database.connection import Database
from weir.errors import InvariantViolation, Truncated, Unavailable, WeirError
from weir.front_ends import do
from weir.model.segment import Segment, segment_name
from weir.model.stream_cut import FUTURE, StreamCut, ready
from weir.queries.controller import absent_files as sql
from weir.warehouse.filesystem import filesystem, not_readable
from weir.warehouse.marker import read_marker


class Lost(NamedTuple):
    """Events of a stream whose files are not in the warehouse, and how it goes on without them."""

    stream: str
    files: int
    events: int
    segments: list[Segment]
    ends: Mapping[int, int]  # per segment id, the offset after the last of them
    cut: StreamCut  # the smallest one that leaves them all behind
    sealed: bool

    @property
    def then(self) -> str:
        """What to do without them, as a phrase that begins with a verb."""
        if self.sealed:  # nobody truncates it by hand
            return do("delete_stream", stream=self.stream, unread_too=True)
        return do("truncate_stream", stream=self.stream, cut=self.cut.to_text())


class Recorded(NamedTuple):
    """What a file that is to be read has, its size, and what to do without it, as phrases."""

    what: str
    bytes: int
    advice: str


def why_unread(
    database: Database,
    warehouse: str,
    path: str,
    error: Exception,
    of_adjunct: Recorded | None = None,
) -> WeirError:
    """Return what it means that a file below the warehouse could not be read. `of_adjunct`: what is
    recorded of a file that is no stream's.

    The error is Unavailable if the storage does not answer, InvariantViolation if the warehouse is
    not the database's or a copy, if the database was restored, or if the file is damaged or was
    deleted by somebody, and Truncated if Weir deleted it since the read was planned.
    """
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    try:
        system, base = filesystem(warehouse)
        found = system.get_file_info(f"{base}/{path}")
        marker = read_marker(warehouse)
        check_marker(warehouse, read_installation(database), marker)
    except OSError as away:
        return not_readable(warehouse, away)
    except WeirError as foreign:
        return foreign
    there = found.type == fs.FileType.File
    recorded = of_adjunct or database.transaction(lambda c: _recorded(c, path))
    if recorded is None:
        return Truncated(
            "file_swept",
            f"file {path} was swept since this read was planned, because its events were "
            "truncated, or lie in another file, or its version was replaced; read again.",
        )
    if there and found.size == recorded.bytes and isinstance(error, OSError):
        return Unavailable(
            "warehouse_unreadable",
            f"file {path} of the warehouse {warehouse} can't be read ({reason}); try again when "
            "its storage is available. If it stays so, the file is damaged: put it back from a "
            "backup.",
        )
    state = f"is damaged ({reason})" if there else "is missing"
    if there and found.size != recorded.bytes:
        state = f"is damaged: it has {found.size:,} of {recorded.bytes:,} bytes"
    return InvariantViolation(
        "file_missing",
        f"file {path}, with {recorded.what}, {state} in the warehouse {warehouse}, although Weir "
        f"did not delete it; {recorded.advice}.",
    )


def not_asked(warehouse: str, path: str, error: Exception) -> WeirError:
    """Return the error for a file that a process without a way to Postgres could not read, which
    can't tell why."""
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return Unavailable(
        "warehouse_unreadable",
        f"file {path} of the warehouse {warehouse} can't be read ({reason}); read again, because "
        "its events may lie in another file by now, or be truncated. If it stays so, "
        f"{do('verify', stream='STREAM')}, which says what became of it.",
    )


def _recorded(connection: Connection, path: str) -> Recorded | None:
    """Return what the database has recorded of a file of a stream that is still to be read."""
    stream = path.partition("/")[0]
    if not (stream.isascii() and stream.isdigit()):
        return None
    size = sql.size(connection, stream_id=int(stream), path=path)
    lost = lost_events(connection, int(stream), [path])
    if size is None or lost is None:
        return None
    what = f"{lost.events:,} events of stream {lost.stream}"
    others = do("recover", unknown_files="report")
    goes_on = "because the stream is sealed, delete it" if lost.sealed else "move the head past it"
    advice = f"put it back, or {goes_on}: {lost.then}; to see all that are missing, {others}"
    return Recorded(what, size, advice)


def lost_events(connection: Connection, stream_id: int, paths: Sequence[str]) -> Lost | None:
    """Return the events, at or after the head of a stream, that are lost with files; None if there
    are none."""
    stream = sql.stream(connection, stream_id=stream_id)
    if stream is None:
        return None
    (head,) = load_cuts(connection, stream_id, stream.head)
    rows = sql.files(connection, stream_id=stream_id, paths=list(paths))
    segments = sql.segments(connection, stream_id=stream_id)
    left = [segment for segment in segments if head.contains(segment)]
    offsets = {segment.segment_id: offset for segment, offset in head.present.items()}
    retained = {segment.segment_id for segment in left}
    ends: dict[int, int] = {}
    events = files = 0
    for row in rows:
        end = row.end_offset
        first = max(row.start_offset, offsets.get(row.segment_id, 0))
        if row.segment_id in retained and end > first:
            files, events = files + 1, events + end - first
            ends[row.segment_id] = max(end, ends.get(row.segment_id, 0))
    if not ends:
        return None
    lacking = [segment for segment in left if segment.segment_id in ends]
    cut = _past(left, offsets, ends)
    return Lost(stream.name, files, events, lacking, ends, cut, stream.state == "sealed")


def _past(left: list[Segment], offsets: Mapping[int, int], ends: Mapping[int, int]) -> StreamCut:
    """Return the smallest cut past the ends of some segments, of those that are left. What precedes
    one of them is passed, and nothing else (semantics 9)."""
    passed: set[Segment] = set()
    for segment in sorted(left, reverse=True):  # the newest first: what precedes them is older
        if segment.segment_id in ends or segment in passed:
            passed |= {o for o in left if o < segment and o.overlaps(segment)}
    remaining = [segment for segment in left if segment not in passed]
    whole = ready(remaining)
    return StreamCut(
        {
            s: max(offsets.get(s.segment_id, 0), ends.get(s.segment_id, 0))
            if s in whole else FUTURE
            for s in remaining
        }
    )  # fmt: skip


def named(lost: Lost) -> str:
    """Return the segments of lost events, and up to where, for a person."""
    return ", ".join(f"{segment_name(s)} up to {end:,}" for s, end in sorted(lost.ends.items()))
