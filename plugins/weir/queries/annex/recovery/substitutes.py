"""What is recorded of files that others are to take the place of. Made by `make queries` from sql/annex/recovery/queries/substitutes.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.model.compaction import Small

FORGET_DIGESTS = text(
    """UPDATE time_index i SET digest = NULL FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]),
    CAST(:pasts AS bigint[])) AS w (segment_id, first, past)
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
    """Forget the digests of commits with events in some ranges of offsets."""
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
        SELECT FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]),
    CAST(:pasts AS bigint[])) AS w (segment_id, first, past) WHERE w.segment_id = p.segment_id AND p.offsets[d.i] < w.past
            AND coalesce(p.offsets[d.i + 1], p.past) > w.first) THEN d.digest END ORDER BY d.i)
    FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i))
WHERE p.stream_id = :stream_id AND EXISTS (
    SELECT FROM unnest(CAST(:segments AS bigint[]), CAST(:firsts AS bigint[]),
    CAST(:pasts AS bigint[])) AS w (segment_id, first, past) WHERE w.segment_id = p.segment_id
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
    """Forget them of commits that share a row."""
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


RECORDED = text(
    """SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
    f.transaction_number, t.clock, f.path, f.erased
FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
WHERE f.stream_id = :stream_id AND f.segment_id IN (
    SELECT m.segment_id FROM data_file m WHERE m.stream_id = :stream_id AND m.path = ANY (CAST(:paths AS text[])))
ORDER BY f.segment_id, f.start_offset"""
)


def recorded(connection: Connection, *, stream_id: int, paths: Sequence[str]) -> list[Small]:
    """Return the files of the segments that have some files."""
    result = connection.execute(RECORDED, {"stream_id": stream_id, "paths": list(paths)})
    return [Small._make(row) for row in result]


COMMITS = text(
    """SELECT c.start_offset, c.start_offset + c.events AS past, c.clock, c.transaction_number
FROM commits_in(CAST(:stream_id AS bigint), CAST(:segment_id AS bigint), CAST(:first AS bigint), CAST(:past AS bigint)) c ORDER BY c.start_offset"""
)


class Commits(NamedTuple):
    """A row of `commits`."""

    start_offset: int
    past: int
    clock: int
    transaction_number: int | None


def commits(
    connection: Connection, *, stream_id: int, segment_id: int, first: int, past: int
) -> list[Commits]:
    """Return the commits of a range of offsets."""
    result = connection.execute(
        COMMITS, {"stream_id": stream_id, "segment_id": segment_id, "first": first, "past": past}
    )
    return [Commits._make(row) for row in result]
