"""What the database knows of compactions. The lease of one holds until the server has started anew, at least. Made by `make queries` from sql/queries/compaction/records.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

SMALL_FILES = text(
    """SELECT s.stream_id, s.stream_name AS stream, f.segment_id, f.start_offset, f.events, f.bytes,
    f.schema_version, f.transaction_number, t.clock, f.path, f.erased,
    count(*) OVER (PARTITION BY f.stream_id) AS small
FROM streams_with_small_files(CAST(:names AS text[]), :bytes, :events, :fewest, :among, :thorough,
                              CAST(:holder AS text)) f
JOIN stream s USING (stream_id)
LEFT JOIN transaction t ON t.stream_id = f.stream_id
    AND t.transaction_number = f.transaction_number
ORDER BY f.apart NULLS FIRST, small DESC, s.stream_id, f.segment_id, f.start_offset LIMIT :most"""
)


class SmallFile(NamedTuple):
    """A row of `small_files`."""

    stream_id: int
    stream: str
    segment_id: int
    start_offset: int
    events: int
    bytes: int
    schema_version: int
    transaction_number: int | None
    clock: int | None
    path: str
    erased: int
    small: int


def small_files(
    connection: Connection,
    *,
    names: Sequence[str] | None,
    bytes: int,
    events: int,
    fewest: int,
    among: int | None,
    thorough: bool,
    holder: str | None,
    most: int,
) -> list[SmallFile]:
    """Return the small files of streams, those of the stream with the most first; last those in which the last compaction found nothing that can be put together, unless `thorough` only if something was committed there since."""
    result = connection.execute(
        SMALL_FILES,
        {
            "names": None if names is None else list(names),
            "bytes": bytes,
            "events": events,
            "fewest": fewest,
            "among": among,
            "thorough": thorough,
            "holder": holder,
            "most": most,
        },
    )
    return [SmallFile._make(row) for row in result]


FILES_APART = text(
    """SELECT stream, small_files AS files_apart, apart AS why FROM weir.small_files
WHERE apart IS NOT NULL
  AND (CAST(:names AS text[]) IS NULL OR stream = ANY (:names)) ORDER BY stream"""
)


class FilesApart(NamedTuple):
    """A row of `files_apart`."""

    stream: str
    files_apart: int
    why: str


def files_apart(connection: Connection, *, names: Sequence[str] | None) -> list[FilesApart]:
    """Return the streams of which no small files can be put together."""
    result = connection.execute(FILES_APART, {"names": None if names is None else list(names)})
    return [FilesApart._make(row) for row in result]


BEGIN = text("""SELECT begin_compaction(:stream_id, :lease, :holder, :token)""")


def begin(
    connection: Connection, *, stream_id: int, lease: float, holder: str | None, token: str | None
) -> int | None:
    """Begin a compaction of a stream, and return its number."""
    result = connection.execute(
        BEGIN, {"stream_id": stream_id, "lease": lease, "holder": holder, "token": token}
    )
    value: int | None = result.scalar_one()
    return value


RENEW = text(
    """UPDATE compaction SET lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE stream_id = :stream_id AND number = :number AND state = 'open'"""
)


def renew(connection: Connection, *, lease: float, stream_id: int, number: int) -> None:
    """Renew the lease of a compaction, if it is still open."""
    result = connection.execute(RENEW, {"lease": lease, "stream_id": stream_id, "number": number})
    result.close()


SWAP = text(
    """SELECT * FROM swap_files(:stream_id, :number, CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:events AS bigint[]), CAST(:bytes AS bigint[]),
    CAST(:paths AS text[]), CAST(:footers AS bigint[]), CAST(:old AS text[]),
    CAST(:news AS integer[]), CAST(:erased AS bigint[]))"""
)


class Swap(NamedTuple):
    """A row of `swap`."""

    outcome: str
    files_before: int
    files_after: int
    events: int
    bytes_before: int
    bytes_after: int


def swap(
    connection: Connection,
    *,
    stream_id: int,
    number: int,
    segments: Sequence[int],
    starts: Sequence[int],
    events: Sequence[int],
    bytes: Sequence[int],
    paths: Sequence[str],
    footers: Sequence[int],
    old: Sequence[str],
    news: Sequence[int],
    erased: Sequence[int],
) -> Swap:
    """Put new files in the place of old ones, and end the compaction. What an outcome other than `done` does not have is null."""
    result = connection.execute(
        SWAP,
        {
            "stream_id": stream_id,
            "number": number,
            "segments": list(segments),
            "starts": list(starts),
            "events": list(events),
            "bytes": list(bytes),
            "paths": list(paths),
            "footers": list(footers),
            "old": list(old),
            "news": list(news),
            "erased": list(erased),
        },
    )
    row = result.one()
    return Swap._make(row)


KEEP_APART = text(
    """UPDATE compaction SET apart = true WHERE stream_id = :stream_id AND number = :number"""
)


def keep_apart(connection: Connection, *, stream_id: int, number: int) -> None:
    """Record that none of the small files of a stream can be put together with its neighbours."""
    result = connection.execute(KEEP_APART, {"stream_id": stream_id, "number": number})
    result.close()


ABORT = text(
    """UPDATE compaction SET state = 'aborted', ended_at = clock_timestamp()
WHERE stream_id = :stream_id AND state = 'open' AND CASE WHEN CAST(:number AS bigint) IS NULL
    THEN lease_is_over(lease_until, 0)
    ELSE number = :number END
RETURNING number"""
)


def abort(connection: Connection, *, stream_id: int, number: int | None) -> list[int]:
    """Abort an open compaction of a locked stream; with no number, if its lease has expired."""
    result = connection.execute(ABORT, {"stream_id": stream_id, "number": number})
    return [row[0] for row in result]


LAPSED = text(
    """SELECT stream_id, stream_name AS stream FROM compaction WHERE state = 'open' AND lease_is_over(lease_until, 0)"""
)


class Lapsed(NamedTuple):
    """A row of `lapsed`."""

    stream_id: int
    stream: str


def lapsed(connection: Connection) -> list[Lapsed]:
    """Return the streams whose compaction has an expired lease."""
    result = connection.execute(LAPSED)
    return [Lapsed._make(row) for row in result]


PRUNE = text(
    """DELETE FROM compaction WHERE state <> 'open'
AND ended_at < clock_timestamp() - :history * interval '1 second'"""
)


def prune(connection: Connection, *, history: float) -> int:
    """Delete the rows of compactions that ended more than `history` seconds ago."""
    result = connection.execute(PRUNE, {"history": history})
    return result.rowcount
