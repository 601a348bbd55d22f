"""What the audit asks of files. Made by `make queries` from sql/annex/audit/queries/files.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

EVERY = text(
    """SELECT s.stream_name AS stream, f.path, f.bytes, f.events - f.erased AS events,
    f.segment_id, f.start_offset, f.events AS offsets, h.firsts, h.pasts
FROM data_file f JOIN stream s USING (stream_id)
CROSS JOIN LATERAL (
    SELECT array_agg(o.chunk * 65536 + lower(m)) AS firsts,
           array_agg(o.chunk * 65536 + upper(m)) AS pasts
    FROM hole o CROSS JOIN LATERAL unnest(o.offsets * int4multirange(int4range(
        greatest(f.start_offset - o.chunk * 65536, 0)::integer,
        least(f.start_offset + f.events - o.chunk * 65536, 65536)::integer))) m
    WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id AND o.chunk BETWEEN
        f.start_offset / 65536 AND (f.start_offset + f.events - 1) / 65536) h
ORDER BY f.path"""
)


class LedgerFile(NamedTuple):
    """What the ledger says of a file."""

    stream: str
    path: str
    bytes: int
    events: int
    segment_id: int
    start_offset: int
    offsets: int
    firsts: list[int] | None
    pasts: list[int] | None


def every(connection: Connection) -> list[LedgerFile]:
    """Return each file, how many rows it must have, and the holes that are declared in it."""
    result = connection.execute(EVERY)
    return [LedgerFile._make(row) for row in result]
