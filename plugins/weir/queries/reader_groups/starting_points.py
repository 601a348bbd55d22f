"""Starting points. Made by `make queries` from sql/queries/reader_groups/starting_points.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

ENDS = text(
    """SELECT stream_id, CASE WHEN :which = 'head' THEN head ELSE tail_cut(stream_id) END AS cut
FROM stream WHERE stream_id = ANY(:ids)"""
)


class End(NamedTuple):
    """A row of `ends`."""

    stream_id: int
    cut: Cut


def ends(connection: Connection, *, which: str, ids: Sequence[int]) -> list[End]:
    """Return the heads or the tails of streams."""
    result = connection.execute(ENDS, {"which": which, "ids": list(ids)})
    return [End._make(row) for row in result]


CLOCK_OF = text("""SELECT time_clock(CAST(:at AS timestamptz))""")


def clock_of(connection: Connection, *, at: datetime) -> int:
    """Return the clock of a time."""
    result = connection.execute(CLOCK_OF, {"at": at})
    value: int = result.scalar_one()
    return value


CHECKPOINT = text(
    """SELECT state, cuts FROM checkpoint WHERE group_id = :group_id AND name = :name"""
)


class Checkpoint(NamedTuple):
    """A row of `checkpoint`."""

    state: str
    cuts: dict[str, Cut]


def checkpoint(connection: Connection, *, group_id: int, name: str) -> Checkpoint | None:
    """Return the state of a checkpoint, and its cuts by stream id."""
    result = connection.execute(CHECKPOINT, {"group_id": group_id, "name": name})
    row = result.one_or_none()
    return None if row is None else Checkpoint._make(row)
