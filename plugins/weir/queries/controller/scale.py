"""Segments that a scale means. Made by `make queries` from sql/queries/controller/scale.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

KNOWN = text(
    """SELECT segment_id FROM segment WHERE stream_id = :stream_id AND segment_id = ANY(:ids)"""
)


def known(connection: Connection, *, stream_id: int, ids: Sequence[int]) -> list[int]:
    """Return those of some segments that the stream has or had."""
    result = connection.execute(KNOWN, {"stream_id": stream_id, "ids": list(ids)})
    return [row[0] for row in result]
