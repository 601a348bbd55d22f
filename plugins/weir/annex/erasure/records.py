"""What the database knows of erasures: which files have the events, and the transaction in which
others take their place."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sqlalchemy import Connection, text

from weir.annex.erasure.sums import Sums, less, total
from weir.compaction import records as compaction
from weir.compaction.records import Written
from weir.controller.holes import add_holes, chunks_of
from weir.controller.locks import no_such_stream, read_stream
from weir.model.compaction import Small
from weir.model.names import StreamName
from weir.model.segment import segment_name

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Asked:
    """Who asks for an erasure, why, and of what: as it is recorded, so without the keys."""

    requested_by: str
    reason: str
    what: Mapping[str, Any]


class Erased(NamedTuple):
    """What an erasure did. `number`: None if there was nothing to erase. The digests are those of
    the commits that had the events, None if one was not recorded (semantics 18.1)."""

    number: int | None
    stream_id: int
    events: int
    files: int
    segments: dict[str, int]
    digest_before: int | None
    digest_after: int | None


def stream_id_of(connection: Connection, name: StreamName) -> int:
    """Return the id of a stream. Raises NotFound."""
    return read_stream(connection, name).stream_id


def files_with(
    connection: Connection, stream_id: int, found: Mapping[int, Offsets]
) -> list[tuple[Small, Offsets]]:
    """Return the files that have events at some offsets of segments, each with those that it has,
    ascending."""
    rows = connection.execute(_FILES, {"s": stream_id, "segments": [int(s) for s in found]})
    files: list[tuple[Small, Offsets]] = []
    for row in rows:
        file, offsets = Small(*row), found[row.segment_id]
        first, past = np.searchsorted(offsets, [file.start_offset, file.start_offset + file.events])
        if first < past:
            files.append((file, offsets[first:past]))
    return files


_FILES = text(
    """SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
        f.transaction_number, t.clock, f.path, f.erased
    FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
    WHERE f.stream_id = :s AND f.segment_id = ANY (CAST(:segments AS bigint[]))
    ORDER BY f.segment_id, f.start_offset"""
)


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
    given = {"s": stream_id, "n": number}
    if (done := connection.execute(_DONE, given).one_or_none()) is not None:
        return Erased(*done)  # its answer was lost
    if keys:
        connection.execute(
            text("SELECT note_erased_keys(:s, CAST(:keys AS text[]))"),
            {"s": stream_id, "keys": list(keys)},
        )
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
    connection.execute(
        text("UPDATE garbage SET reason = 'erased' WHERE stream_id = :s AND reason <> 'swept'"),
        {"s": stream_id},
    )
    recorded = connection.execute(
        text(
            """SELECT record_requested_erasure(:s, :number, :by, :reason,
                CAST(:asked AS jsonb), :events, :files, :before, :after,
                CAST(:segments AS jsonb))"""
        ),
        {
            "s": stream_id, "number": number, "by": asked.requested_by, "reason": asked.reason,
            "asked": json.dumps(dict(asked.what)), "events": events, "files": len(erased),
            "before": before, "after": after, "segments": json.dumps(segments),
        },
    ).scalar_one()  # fmt: skip
    return Erased(recorded, stream_id, events, len(erased), dict(segments), before, after)


def record_again(
    connection: Connection, stream_id: int, number: int, events: int, written: Sequence[Written]
) -> None:
    """Record what was erased after the backup from which a database was restored: nobody knows who
    asked for it."""
    segments: Counter[str] = Counter()
    for one in written:
        segments[segment_name(one.old[0].segment_id)] += one.erased
    connection.execute(
        text(
            """SELECT record_erasure(:s, :number, 'recovery', 'erased after the backup', :events,
                :files, CAST(:segments AS jsonb))"""
        ),
        {
            "s": stream_id, "number": number, "events": events, "files": len(written),
            "segments": json.dumps(segments),
        },
    )  # fmt: skip


_DONE = text(
    """SELECT erasure_number, stream_id, events, files, segments, digest_before, digest_after
    FROM erasure WHERE stream_id = :s AND compaction_number = :n"""
)


def _lower_digests(
    connection: Connection, stream_id: int, sums: Sums
) -> tuple[int | None, int | None]:
    """Take the digests of erased events out of those of their commits. Returns the digest of these
    commits before, and after."""
    gone = {(segment_id, clock): one for segment_id, clock, one in sums.digests()}
    places = {
        "s": stream_id, "segments": [segment for segment, _ in gone],
        "clocks": [clock for _, clock in gone],
    }  # fmt: skip
    known = {
        (row.segment_id, row.clock): row.digest for row in connection.execute(_DIGESTS, places)
    }
    left = {
        place: None if (was := known.get(place)) is None else less(was, one)
        for place, one in gone.items()
    }
    for statement in (_LOWER, _LOWER_PACKED):
        connection.execute(statement, {**places, "digests": list(left.values())})
    return total([known.get(place) for place in gone]), total(list(left.values()))


_GIVEN = (
    """unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[])) AS n (segment_id, clock)"""
)
_NEW = """unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[]),
    CAST(:digests AS bigint[]))
    AS n (segment_id, clock, digest)"""
_DIGESTS = text(
    f"""SELECT n.segment_id, n.clock, i.digest FROM {_GIVEN}
    JOIN time_index i ON i.stream_id = :s AND i.segment_id = n.segment_id AND i.clock = n.clock
    UNION ALL
    SELECT n.segment_id, n.clock, p.digests[array_position(p.clocks, n.clock)] FROM {_GIVEN}
    JOIN packed_commits p ON p.stream_id = :s AND p.segment_id = n.segment_id
        AND n.clock BETWEEN p.first_clock AND p.last_clock"""  # noqa: S608 - constants
)
_LOWER = text(
    f"""UPDATE time_index i SET digest = n.digest FROM {_NEW}
    WHERE i.stream_id = :s AND i.segment_id = n.segment_id AND i.clock = n.clock
        AND i.digest IS NOT NULL"""  # noqa: S608 - constants
)
_LOWER_PACKED = text(
    f"""UPDATE packed_commits p SET digests = (
        SELECT array_agg(coalesce(n.digest, d.digest) ORDER BY d.i)
        FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i)
        LEFT JOIN {_NEW} ON n.segment_id = p.segment_id AND n.clock = p.clocks[d.i])
    WHERE p.stream_id = :s AND p.digests IS NOT NULL AND EXISTS (
        SELECT FROM {_GIVEN} WHERE n.segment_id = p.segment_id
            AND n.clock BETWEEN p.first_clock AND p.last_clock)"""  # noqa: S608 - constants
)
