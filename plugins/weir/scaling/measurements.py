"""Remember which streams are being measured, because to compute their routing keys may kill the
process that measures: what ended without a word is measured last, alone, and rests in between. A
limit on the memory of each is not to be had, because a JVM has one heap; a process for each would
cost seconds."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.errors import WeirError


@contextmanager
def measuring(database: Database, streams: Sequence[int]) -> Iterator[None]:
    """Run a block that measures streams. Until it says how it ended, they count as those that may
    have killed the run."""
    database.transaction(partial(_begin, streams=streams))
    try:
        yield
    except WeirError:
        database.transaction(partial(_end, streams=streams))
        raise
    database.transaction(partial(_end, streams=streams))


def _begin(connection: Connection, streams: Sequence[int]) -> None:
    connection.execute(
        text(
            """INSERT INTO scale_measurement AS m (stream_id, silent_attempts, begun_at)
            SELECT s, 1, clock_timestamp() FROM unnest(CAST(:ids AS bigint[])) s ORDER BY s
            ON CONFLICT (stream_id) DO UPDATE SET silent_attempts = m.silent_attempts + 1,
                begun_at = excluded.begun_at"""
        ),
        {"ids": list(streams)},
    )


def _end(connection: Connection, streams: Sequence[int]) -> None:
    connection.execute(
        text("DELETE FROM scale_measurement WHERE stream_id = ANY(CAST(:ids AS bigint[]))"),
        {"ids": list(streams)},
    )
