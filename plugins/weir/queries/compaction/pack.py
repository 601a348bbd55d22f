"""Pack old entries of the time index. Made by `make queries` from sql/queries/compaction/pack.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

TO_PACK = text(
    """SELECT b.before, f.*
FROM (SELECT now_clock() - CAST(CAST(:age AS float8) * 1000000 AS bigint) AS before) b
CROSS JOIN LATERAL commits_to_pack(b.before, :most) f"""
)


class ToPack(NamedTuple):
    """A row of `to_pack`."""

    before: int
    stream_id: int
    stream: str
    segment_id: int
    commits: int
    room: int


def to_pack(connection: Connection, *, age: float, most: int) -> list[ToPack]:
    """Return in which segments commits are older than `age` seconds, and how many."""
    result = connection.execute(TO_PACK, {"age": age, "most": most})
    return [ToPack._make(row) for row in result]


PACK = text("""SELECT pack_commits(:stream_id, CAST(:segments AS bigint[]), :before, :most)""")


def pack(
    connection: Connection, *, stream_id: int, segments: Sequence[int], before: int, most: int
) -> int:
    """Pack commits to segments, so many into a row; return how many."""
    result = connection.execute(
        PACK, {"stream_id": stream_id, "segments": list(segments), "before": before, "most": most}
    )
    value: int = result.scalar_one()
    return value
