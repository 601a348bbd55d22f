"""What can take the place of missing files, and what is said of it then. Made by `make queries` from sql/annex/recovery/queries/substitutes.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.compaction import Small

RECORDED = text(
    """SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
    f.transaction_number, t.clock, f.path, f.erased
FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
WHERE f.stream_id = :stream_id AND f.erased = 0 AND f.segment_id IN (
    SELECT m.segment_id FROM data_file m WHERE m.stream_id = :stream_id AND m.path = ANY (:paths))
ORDER BY f.segment_id, f.start_offset"""
)


def recorded(connection: Connection, *, stream_id: int, paths: Sequence[str]) -> list[Small]:
    """Return the files of the segments of missing ones, without those of which events were erased: what was erased is in the files that were replaced, and these do not come back."""
    result = connection.execute(RECORDED, {"stream_id": stream_id, "paths": list(paths)})
    return [Small._make(row) for row in result]


COMMITS = text(
    """SELECT c.start_offset, c.start_offset + c.events AS past, c.clock, c.transaction_number
FROM commits_in(:stream_id, :segment, :first, :past) c ORDER BY c.start_offset"""
)


class RecordedCommit(NamedTuple):
    """A row of `commits`."""

    start_offset: int
    past: int
    clock: int
    transaction_number: int


def commits(
    connection: Connection, *, stream_id: int, segment: int, first: int, past: int
) -> list[RecordedCommit]:
    """Return the commits of a segment between two offsets."""
    result = connection.execute(
        COMMITS, {"stream_id": stream_id, "segment": segment, "first": first, "past": past}
    )
    return [RecordedCommit._make(row) for row in result]


FORGET_DIGESTS = text(
    """UPDATE time_index i SET digest = NULL FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:pasts AS bigint[]))
        AS w (segment_id, first, past)
WHERE i.stream_id = :stream_id AND i.segment_id = w.segment_id
    AND i.start_offset < w.past AND i.start_offset + i.events > w.first"""
)


def forget_digests(
    connection: Connection,
    *,
    segments: Sequence[int],
    firsts: Sequence[int],
    pasts: Sequence[int],
    stream_id: int,
) -> None:
    """Forget the digests of commits between some offsets."""
    result = connection.execute(
        FORGET_DIGESTS,
        {
            "segments": list(segments),
            "firsts": list(firsts),
            "pasts": list(pasts),
            "stream_id": stream_id,
        },
    )
    result.close()


FORGET_PACKED_DIGESTS = text(
    """UPDATE packed_commits p SET digests = (
    SELECT array_agg(CASE WHEN NOT EXISTS (
        SELECT FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:pasts AS bigint[]))
        AS w (segment_id, first, past) WHERE w.segment_id = p.segment_id AND p.offsets[d.i] < w.past
            AND coalesce(p.offsets[d.i + 1], p.past) > w.first) THEN d.digest END ORDER BY d.i)
    FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i))
WHERE p.stream_id = :stream_id AND EXISTS (
    SELECT FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]), CAST(:pasts AS bigint[]))
        AS w (segment_id, first, past) WHERE w.segment_id = p.segment_id
        AND p.start_offset < w.past AND p.past > w.first)"""
)


def forget_packed_digests(
    connection: Connection,
    *,
    segments: Sequence[int],
    firsts: Sequence[int],
    pasts: Sequence[int],
    stream_id: int,
) -> None:
    """Forget the digests of commits between some offsets, of commits that are packed."""
    result = connection.execute(
        FORGET_PACKED_DIGESTS,
        {
            "segments": list(segments),
            "firsts": list(firsts),
            "pasts": list(pasts),
            "stream_id": stream_id,
        },
    )
    result.close()
