"""Which streams are being measured. Made by `make queries` from sql/queries/scaling/measurements.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

BEGIN = text(
    """INSERT INTO scale_measurement AS m (stream_id, silent_attempts, begun_at)
SELECT s, 1, clock_timestamp() FROM unnest(CAST(:ids AS bigint[])) s ORDER BY s
ON CONFLICT (stream_id) DO UPDATE SET silent_attempts = m.silent_attempts + 1,
    begun_at = excluded.begun_at"""
)


def begin(connection: Connection, *, ids: Sequence[int]) -> None:
    """Note that streams are measured, and that they have not said how it ended."""
    result = connection.execute(BEGIN, {"ids": list(ids)})
    result.close()


END = text("""DELETE FROM scale_measurement WHERE stream_id = ANY(CAST(:ids AS bigint[]))""")


def end(connection: Connection, *, ids: Sequence[int]) -> None:
    """Note that the measurement of streams has ended."""
    result = connection.execute(END, {"ids": list(ids)})
    result.close()
