"""Pins of groups. Made by `make queries` from sql/queries/reader_groups/groups/pins.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

DELETE = text("""DELETE FROM reader_group_pin WHERE group_id = :group_id""")


def delete(connection: Connection, *, group_id: int) -> None:
    """Delete the pins of a group."""
    result = connection.execute(DELETE, {"group_id": group_id})
    result.close()


INSERT = text(
    """INSERT INTO reader_group_pin (group_id, stream_id, key_low, key_high, label)
SELECT :group_id, p.* FROM unnest(
    CAST(:streams AS bigint[]), CAST(:lows AS double precision[]),
    CAST(:highs AS double precision[]), CAST(:labels AS text[])) AS p"""
)


def insert(
    connection: Connection,
    *,
    group_id: int,
    streams: Sequence[int],
    lows: Sequence[float],
    highs: Sequence[float],
    labels: Sequence[str],
) -> None:
    """Add pins to a group."""
    result = connection.execute(
        INSERT,
        {
            "group_id": group_id,
            "streams": list(streams),
            "lows": list(lows),
            "highs": list(highs),
            "labels": list(labels),
        },
    )
    result.close()


PINS = text(
    """SELECT stream_id, key_low, key_high, label FROM reader_group_pin
WHERE group_id = :group_id ORDER BY stream_id, key_low"""
)


class PinRow(NamedTuple):
    """A row of `pins`."""

    stream_id: int
    key_low: float
    key_high: float
    label: str


def pins(connection: Connection, *, group_id: int) -> list[PinRow]:
    """Return the pins of a group."""
    result = connection.execute(PINS, {"group_id": group_id})
    return [PinRow._make(row) for row in result]
