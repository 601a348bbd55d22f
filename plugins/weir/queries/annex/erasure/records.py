"""What the database records of an erasure of a stream. Made by `make queries` from sql/annex/erasure/queries/records.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.compaction import Small

FILES = text(
    """SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
    f.transaction_number, t.clock, f.path, f.erased
FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
WHERE f.stream_id = :stream_id AND f.segment_id = ANY (CAST(:segments AS bigint[]))
ORDER BY f.segment_id, f.start_offset"""
)


def files(connection: Connection, *, stream_id: int, segments: Sequence[int]) -> list[Small]:
    """Return the files of some segments."""
    result = connection.execute(FILES, {"stream_id": stream_id, "segments": list(segments)})
    return [Small._make(row) for row in result]


DONE = text(
    """SELECT erasure_number AS number, stream_id, events, files, segments, digest_before, digest_after
FROM erasure WHERE stream_id = :stream_id AND compaction_number = :number"""
)


class Erased(NamedTuple):
    """What an erasure did. `number`: None if there was nothing to erase. The digests are those of the commits that had the events, None if one was not recorded (semantics 18.1)."""

    number: int | None
    stream_id: int
    events: int
    files: int
    segments: dict[str, int]
    digest_before: int | None
    digest_after: int | None


def done(connection: Connection, *, stream_id: int, number: int) -> Erased | None:
    """Return what an erasure did that has ended."""
    result = connection.execute(DONE, {"stream_id": stream_id, "number": number})
    row = result.one_or_none()
    return None if row is None else Erased._make(row)


NOTE_KEYS = text("""SELECT note_erased_keys(:stream_id, CAST(:keys AS text[]))""")


def note_keys(connection: Connection, *, stream_id: int, keys: Sequence[str]) -> None:
    """Note hashes of routing keys that are erased."""
    result = connection.execute(NOTE_KEYS, {"stream_id": stream_id, "keys": list(keys)})
    result.close()


LET_GARBAGE_GO = text(
    """UPDATE garbage SET reason = 'erased' WHERE stream_id = :stream_id AND reason <> 'swept'"""
)


def let_garbage_go(connection: Connection, *, stream_id: int) -> None:
    """Let all that is garbage of a stream go without a grace period: it may have the events, too."""
    result = connection.execute(LET_GARBAGE_GO, {"stream_id": stream_id})
    result.close()


RECORD = text(
    """SELECT record_requested_erasure(:stream_id, :number, :by, :reason, CAST(:asked AS jsonb), :events,
    :files, :before, :after, CAST(:segments AS jsonb))"""
)


def record(
    connection: Connection,
    *,
    stream_id: int,
    number: int,
    by: str,
    reason: str,
    asked: str,
    events: int,
    files: int,
    before: int | None,
    after: int | None,
    segments: str,
) -> int:
    """Record an erasure that was asked for. Returns its number."""
    result = connection.execute(
        RECORD,
        {
            "stream_id": stream_id,
            "number": number,
            "by": by,
            "reason": reason,
            "asked": asked,
            "events": events,
            "files": files,
            "before": before,
            "after": after,
            "segments": segments,
        },
    )
    value: int = result.scalar_one()
    return value


RECORD_AGAIN = text(
    """SELECT record_erasure(:stream_id, :number, 'recovery', 'erased after the backup', :events, :files,
    CAST(:segments AS jsonb))"""
)


def record_again(
    connection: Connection, *, stream_id: int, number: int, events: int, files: int, segments: str
) -> None:
    """Record an erasure of which nobody knows who asked for it."""
    result = connection.execute(
        RECORD_AGAIN,
        {
            "stream_id": stream_id,
            "number": number,
            "events": events,
            "files": files,
            "segments": segments,
        },
    )
    result.close()


DIGESTS = text(
    """SELECT n.segment_id, n.clock, i.digest FROM unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[])) AS n (segment_id, clock)
JOIN time_index i ON i.stream_id = :stream_id AND i.segment_id = n.segment_id AND i.clock = n.clock
UNION ALL
SELECT n.segment_id, n.clock, p.digests[array_position(p.clocks, n.clock)] FROM unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[])) AS n (segment_id, clock)
JOIN packed_commits p ON p.stream_id = :stream_id AND p.segment_id = n.segment_id
    AND n.clock BETWEEN p.first_clock AND p.last_clock"""
)


class Digests(NamedTuple):
    """A row of `digests`."""

    segment_id: int
    clock: int
    digest: int | None


def digests(
    connection: Connection, *, segments: Sequence[int], clocks: Sequence[int], stream_id: int
) -> list[Digests]:
    """Return the digests of some commits, each by its segment and clock."""
    result = connection.execute(
        DIGESTS, {"segments": list(segments), "clocks": list(clocks), "stream_id": stream_id}
    )
    return [Digests._make(row) for row in result]


LOWER = text(
    """UPDATE time_index i SET digest = n.digest FROM unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[]), CAST(:digests AS bigint[]))
        AS n (segment_id, clock, digest)
WHERE i.stream_id = :stream_id AND i.segment_id = n.segment_id AND i.clock = n.clock
    AND i.digest IS NOT NULL"""
)


def lower(
    connection: Connection,
    *,
    segments: Sequence[int],
    clocks: Sequence[int],
    digests: Sequence[int | None],
    stream_id: int,
) -> None:
    """Put digests in the place of recorded ones."""
    result = connection.execute(
        LOWER,
        {
            "segments": list(segments),
            "clocks": list(clocks),
            "digests": list(digests),
            "stream_id": stream_id,
        },
    )
    result.close()


LOWER_PACKED = text(
    """UPDATE packed_commits p SET digests = (
    SELECT array_agg(coalesce(n.digest, d.digest) ORDER BY d.i)
    FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i)
    LEFT JOIN unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[]), CAST(:digests AS bigint[]))
        AS n (segment_id, clock, digest) ON n.segment_id = p.segment_id AND n.clock = p.clocks[d.i])
WHERE p.stream_id = :stream_id AND p.digests IS NOT NULL AND EXISTS (
    SELECT FROM unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[])) AS n (segment_id, clock) WHERE n.segment_id = p.segment_id
        AND n.clock BETWEEN p.first_clock AND p.last_clock)"""
)


def lower_packed(
    connection: Connection,
    *,
    segments: Sequence[int],
    clocks: Sequence[int],
    digests: Sequence[int | None],
    stream_id: int,
) -> None:
    """Put digests in the place of recorded ones, of commits that are packed."""
    result = connection.execute(
        LOWER_PACKED,
        {
            "segments": list(segments),
            "clocks": list(clocks),
            "digests": list(digests),
            "stream_id": stream_id,
        },
    )
    result.close()
