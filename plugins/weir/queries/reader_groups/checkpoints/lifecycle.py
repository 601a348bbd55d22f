"""Checkpoints that wait for batches, and that end. Made by `make queries` from sql/queries/reader_groups/checkpoints/lifecycle.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

STATE_OF = text("""SELECT state FROM checkpoint WHERE group_id = :group_id AND name = :name""")


def state_of(connection: Connection, *, group_id: int, name: str) -> str | None:
    """Return the state of a checkpoint."""
    result = connection.execute(STATE_OF, {"group_id": group_id, "name": name})
    value: str | None = result.scalar_one_or_none()
    return value


WAITING = text(
    """SELECT name, late, waits, lost FROM waiting_checkpoints() WHERE group_id = :group_id ORDER BY created_at"""
)


class Waiting(NamedTuple):
    """A row of `waiting`."""

    name: str
    late: bool | None
    waits: bool
    lost: bool


def waiting(connection: Connection, *, group_id: int) -> list[Waiting]:
    """Return the checkpoints of a group that wait, and what has become of their batches."""
    result = connection.execute(WAITING, {"group_id": group_id})
    return [Waiting._make(row) for row in result]


OPEN_BATCHES = text(
    """SELECT batch_id, reader_id, bounds FROM reader_batch
WHERE group_id = :group_id AND state = 'open' ORDER BY batch_id"""
)


class OpenBatch(NamedTuple):
    """A row of `open_batches`."""

    batch_id: int
    reader_id: str
    bounds: list[dict[str, int]]


def open_batches(connection: Connection, *, group_id: int) -> list[OpenBatch]:
    """Return the open batches of a group."""
    result = connection.execute(OPEN_BATCHES, {"group_id": group_id})
    return [OpenBatch._make(row) for row in result]


WAIT = text(
    """WITH made AS (
    INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, released, state,
                            waits_for, expires_at)
    SELECT :group_id, coalesce(CAST(:name AS text), 'automatic-' || time_clock(t.now)),
           CASE WHEN CAST(:name AS text) IS NULL THEN 'automatic' ELSE 'manual' END,
           t.now, CAST(:cuts AS jsonb), false, 'waiting', CAST(:batches AS bigint[]),
           t.now + :patience * interval '1 second'
    FROM (SELECT clock_timestamp() AS now) t
    ON CONFLICT (group_id, name) DO NOTHING RETURNING name
), looked_at AS (
    UPDATE reader_group SET checkpointed_at = clock_timestamp()
    WHERE group_id = :group_id AND CAST(:name AS text) IS NULL
)
SELECT name FROM made"""
)


def wait(
    connection: Connection,
    *,
    group_id: int,
    name: str | None,
    cuts: str,
    batches: Sequence[int],
    patience: float,
) -> str | None:
    """Record a checkpoint that waits for batches, and return its name; None if that is in use."""
    result = connection.execute(
        WAIT,
        {
            "group_id": group_id,
            "name": name,
            "cuts": cuts,
            "batches": list(batches),
            "patience": patience,
        },
    )
    value: str | None = result.scalar_one_or_none()
    return value


CUTS = text(
    """SELECT jsonb_object_agg(gs.stream_id::text, group_cut(gs.group_id, gs.stream_id)) AS cuts
FROM reader_group_stream gs JOIN stream s USING (stream_id)
WHERE gs.group_id = :group_id AND s.state <> 'deleted'"""
)


def cuts(connection: Connection, *, group_id: int) -> dict[str, Cut] | None:
    """Return by stream id where a group is."""
    result = connection.execute(CUTS, {"group_id": group_id})
    value: dict[str, Cut] | None = result.scalar_one()
    return value


OUTSTANDING = text(
    """SELECT count(c.name) AS waiting, g.max_outstanding AS most, min(c.name) AS name
FROM reader_group g
LEFT JOIN checkpoint c ON c.group_id = g.group_id AND c.state = 'waiting'
WHERE g.group_id = :group_id GROUP BY g.max_outstanding"""
)


class Outstanding(NamedTuple):
    """A row of `outstanding`."""

    waiting: int
    most: int
    name: str | None


def outstanding(connection: Connection, *, group_id: int) -> Outstanding:
    """Return how many checkpoints of a group wait, such as which, and how many may."""
    result = connection.execute(OUTSTANDING, {"group_id": group_id})
    row = result.one()
    return Outstanding._make(row)


END = text(
    """UPDATE checkpoint SET state = :state, ended_at = clock_timestamp(),
expires_at = NULL WHERE group_id = :group_id AND name = ANY(:names)"""
)


def end(connection: Connection, *, state: str, group_id: int, names: Sequence[str]) -> None:
    """End checkpoints that wait."""
    result = connection.execute(END, {"state": state, "group_id": group_id, "names": list(names)})
    result.close()
