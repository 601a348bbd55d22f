"""What subscribers have released of streams. Made by `make queries` from sql/queries/reader_groups/groups/releases.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

RELEASED = text("""SELECT * FROM released_by_all(CAST(:ids AS bigint[]), :group)""")


class Released(NamedTuple):
    """A row of `released`."""

    stream_id: int
    events: int
    lost: dict[str, int]
    behind: dict[str, int]
    passed: int | None


def released(connection: Connection, *, ids: Sequence[int], group: str) -> list[Released]:
    """Return what all subscribers of streams have released of each."""
    result = connection.execute(RELEASED, {"ids": list(ids), "group": group})
    return [Released._make(row) for row in result]
