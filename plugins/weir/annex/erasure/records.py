"""What the database knows of erasures: which files have the events, and the transaction in which
others take their place."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection

from weir.annex.erasure.asked import AskedOf
from weir.annex.erasure.sums import Sums, less, total
from weir.annex.recovery.holes import add_holes, chunks_of
from weir.compaction import records as compaction
from weir.compaction.records import Written
from weir.controller.locks import no_such_stream, read_stream
from weir.model.compaction import Small
from weir.model.names import StreamName
from weir.model.segment import segment_name
from weir.queries.annex.erasure import records as sql
from weir.queries.annex.erasure.records import Erased

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """Who asks for an erasure, why, and of what: as it is recorded, so without the keys."""

    requested_by: str
    reason: str
    what: AskedOf


def stream_id_of(connection: Connection, name: StreamName) -> int:
    """Return the id of a stream. Raises NotFound."""
    return read_stream(connection, name).stream_id


def files_with(
    connection: Connection, stream_id: int, found: Mapping[int, Offsets]
) -> list[tuple[Small, Offsets]]:
    """Return the files that have events at some offsets of segments, each with those that it has,
    ascending."""
    files: list[tuple[Small, Offsets]] = []
    for file in sql.files(connection, stream_id=stream_id, segments=[int(s) for s in found]):
        offsets = found[file.segment_id]
        first, past = np.searchsorted(offsets, [file.start_offset, file.start_offset + file.events])
        if first < past:
            files.append((file, offsets[first:past]))
    return files


def end(
    connection: Connection,
    name: StreamName,
    stream_id: int,
    number: int,
    asked: Asked,
    written: Sequence[Written],
    files: Sequence[tuple[Small, Offsets]],
    sums: Sums,
    keys: Sequence[str],
) -> Erased:
    """Put new files in the place of old ones, record the holes and the erasure, and make all that
    is garbage of the stream go without a grace period: it may have the events, too. Note hashes of
    the routing keys `keys`, whether or not the stream has events of them.

    Raises Fenced if the compaction was aborted meanwhile, NotFound if the stream was deleted."""
    if compaction.swap(connection, stream_id, number, written) is None:
        raise no_such_stream(name)
    if (done := sql.done(connection, stream_id=stream_id, number=number)) is not None:
        return done  # its answer was lost
    if keys:
        sql.note_keys(connection, stream_id=stream_id, keys=[*keys])
    gone = {one.old[0].path for one in written}
    erased = [(file, offsets) for file, offsets in files if file.path in gone]
    if not erased:
        return Erased(None, stream_id, 0, 0, {}, None, None)
    chunks = [chunk for file, offsets in erased for chunk in chunks_of(file.segment_id, offsets)]
    events = add_holes(connection, stream_id, chunks)
    before, after = _lower_digests(connection, stream_id, sums)
    segments: Counter[str] = Counter()
    for file, offsets in erased:
        segments[segment_name(file.segment_id)] += len(offsets)
    sql.let_garbage_go(connection, stream_id=stream_id)
    recorded = sql.record(
        connection, stream_id=stream_id, number=number, by=asked.requested_by, reason=asked.reason,
        asked=json.dumps(dict(asked.what)), events=events, files=len(erased), before=before,
        after=after, segments=json.dumps(segments),
    )  # fmt: skip
    return Erased(recorded, stream_id, events, len(erased), dict(segments), before, after)


def record_again(
    connection: Connection, stream_id: int, number: int, events: int, written: Sequence[Written]
) -> None:
    """Record what was erased after the backup from which a database was restored: nobody knows who
    asked for it."""
    segments: Counter[str] = Counter()
    for one in written:
        segments[segment_name(one.old[0].segment_id)] += one.erased
    sql.record_again(
        connection, stream_id=stream_id, number=number, events=events, files=len(written),
        segments=json.dumps(segments),
    )  # fmt: skip


def _lower_digests(
    connection: Connection, stream_id: int, sums: Sums
) -> tuple[int | None, int | None]:
    """Take the digests of erased events out of those of their commits. Returns the digest of these
    commits before, and after."""
    gone = {(segment_id, clock): one for segment_id, clock, one in sums.digests()}
    segments, clocks = [segment for segment, _ in gone], [clock for _, clock in gone]
    known = {
        (row.segment_id, row.clock): row.digest
        for row in sql.digests(connection, stream_id=stream_id, segments=segments, clocks=clocks)
    }
    left = [
        None if (was := known.get(place)) is None else less(was, one) for place, one in gone.items()
    ]
    for lower in (sql.lower, sql.lower_packed):
        lower(connection, stream_id=stream_id, segments=segments, clocks=clocks, digests=left)
    return total([known.get(place) for place in gone]), total(left)
