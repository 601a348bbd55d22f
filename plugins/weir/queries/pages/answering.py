"""What all addresses ask. Made by `make queries` from sql/queries/pages/answering.sql."""

from sqlalchemy import Connection, text

IS_STREAM = text(
    """SELECT EXISTS (SELECT FROM weir.stream_configuration WHERE stream = :stream) AS there"""
)


def is_stream(connection: Connection, *, stream: str) -> bool:
    """Return whether there is a stream."""
    result = connection.execute(IS_STREAM, {"stream": stream})
    value: bool = result.scalar_one()
    return value
