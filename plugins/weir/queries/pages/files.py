"""The files of a stream. Made by `make queries` from sql/queries/pages/files.sql."""

from datetime import datetime

from pydantic import BaseModel
from sqlalchemy import Connection, text

FILES = text(
    """SELECT weir_internal.segment_name(f.segment_id) AS segment, f.start_offset,
    f.start_offset + f.events AS end_offset, f.events - f.erased AS events, f.bytes,
    f.transaction_number,
    weir_internal.clock_time(coalesce(f.first_clock, t.clock)) AS first_clock,
    weir_internal.clock_time(coalesce(f.last_clock, t.clock)) AS last_clock, f.path
FROM weir_internal.data_file f LEFT JOIN weir_internal.transaction t
    ON t.stream_id = f.stream_id AND t.transaction_number = f.transaction_number
WHERE f.stream_name = :stream
    AND (:segment = '' OR weir_internal.segment_name(f.segment_id) = :segment)
    AND (weir_internal.segment_name(f.segment_id), f.start_offset)
        > (:after_segment, CAST(:after_offset AS bigint))
ORDER BY 1, f.start_offset LIMIT CAST(:limit AS bigint) + 1"""
)


class File(BaseModel):
    """A Parquet file: the events of a segment from `start_offset` up to `end_offset`, which were committed from `first_clock` to `last_clock`. `transaction_number`: none for a file that compaction has written."""

    segment: str
    start_offset: int
    end_offset: int
    events: int
    bytes: int
    transaction_number: int | None
    first_clock: datetime
    last_clock: datetime
    path: str


def files(
    connection: Connection,
    *,
    stream: str,
    segment: str,
    after_segment: str,
    after_offset: int,
    limit: int,
) -> list[File]:
    """Return a page of files, one more than `limit`, by segment and offset. Of the table, as the view weir.data_files has no clocks: they would cost it a probe for each row."""
    result = connection.execute(
        FILES,
        {
            "stream": stream,
            "segment": segment,
            "after_segment": after_segment,
            "after_offset": after_offset,
            "limit": limit,
        },
    )
    return [File(**row._mapping) for row in result]


TOTAL = text(
    """SELECT count(*) AS total FROM (SELECT FROM weir.data_files f
    WHERE f.stream = :stream AND (:segment = '' OR f.segment = :segment)
    LIMIT :most) f"""
)


def total(connection: Connection, *, stream: str, segment: str, most: int) -> int:
    """Return how many files a stream or a segment has, `most` if it has more."""
    result = connection.execute(TOTAL, {"stream": stream, "segment": segment, "most": most})
    value: int = result.scalar_one()
    return value


WHY = text(
    """SELECT why, count(*) AS files, sum(events)::bigint AS events, sum(bytes)::bigint AS bytes
FROM weir.why_kept(:stream, CAST(NULLIF(:path, '') AS text))
GROUP BY why ORDER BY sum(bytes) DESC NULLS LAST, why LIMIT :most"""
)


class Reason(BaseModel):
    """Why some files are still there."""

    why: str
    files: int
    events: int | None
    bytes: int | None


def why(connection: Connection, *, stream: str, path: str, most: int) -> list[Reason]:
    """Return why files are still there, what keeps most first."""
    result = connection.execute(WHY, {"stream": stream, "path": path, "most": most})
    return [Reason(**row._mapping) for row in result]
