"""Aligned groups. Made by `make queries` from sql/queries/reader_groups/batches/alignment.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

IS_ALIGNED = text("""SELECT aligned FROM reader_group WHERE name = :name""")


def is_aligned(connection: Connection, *, name: str) -> bool | None:
    """Return whether a group is aligned."""
    result = connection.execute(IS_ALIGNED, {"name": name})
    value: bool | None = result.scalar_one_or_none()
    return value


CLOSE = text("""SELECT close_streams(CAST(:ids AS bigint[]))""")


def close(connection: Connection, *, ids: Sequence[int]) -> int:
    """Close streams at one clock, and return it."""
    result = connection.execute(CLOSE, {"ids": list(ids)})
    value: int = result.scalar_one()
    return value
