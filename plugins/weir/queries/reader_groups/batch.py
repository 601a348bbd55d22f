"""Open batches, and who holds them. Made by `make queries` from sql/queries/reader_groups/batch.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

RECORD = text(
    """SELECT b.token, b.state, b.rest, b.outputs IS NOT NULL AS has_outputs,
    EXISTS (SELECT FROM checkpoint c WHERE c.group_id = b.group_id AND c.state = 'waiting')
        AS awaited FROM reader_batch b WHERE b.group_id = :group_id AND b.batch_id = :batch_id"""
)


class Held(NamedTuple):
    """A row of `record`."""

    token: int
    state: str
    rest: list[list[dict[str, int]]]
    has_outputs: bool
    awaited: bool


def record(connection: Connection, *, group_id: int, batch_id: int) -> Held | None:
    """Return the record of a batch."""
    result = connection.execute(RECORD, {"group_id": group_id, "batch_id": batch_id})
    row = result.one_or_none()
    return None if row is None else Held._make(row)


HOLD = text(
    """WITH reader AS MATERIALIZED (
    SELECT FROM reader
    WHERE group_id = :group_id AND reader_id = :reader_id FOR NO KEY UPDATE
)
SELECT b.token, b.state, b.rest, b.outputs IS NOT NULL AS has_outputs,
    EXISTS (SELECT FROM checkpoint c WHERE c.group_id = b.group_id AND c.state = 'waiting')
        AS awaited FROM reader_batch b
WHERE b.group_id = :group_id AND b.batch_id = :batch_id AND (SELECT count(*) FROM reader) >= 0"""
)


def hold(connection: Connection, *, group_id: int, reader_id: str, batch_id: int) -> Held | None:
    """Lock the reader of a batch, and return the batch's record. The group is locked, so a batch does not change while this waits for the reader. A part of a query that nothing depends on would not run: so the rows that are locked are counted."""
    result = connection.execute(
        HOLD, {"group_id": group_id, "reader_id": reader_id, "batch_id": batch_id}
    )
    row = result.one_or_none()
    return None if row is None else Held._make(row)
