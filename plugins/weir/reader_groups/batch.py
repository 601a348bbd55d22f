"""An open batch, and the check that it still belongs to the attempt that reads it."""

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import Connection, TextClause, text

from weir.errors import Fenced
from weir.model.bounds import Bound


@dataclass(frozen=True)
class Batch:
    """An open batch, and the token under which a reader holds it. `up_to`: of an aligned group, the
    clock up to which it has everything."""

    group_id: int
    group: str
    batch_id: int
    reader_id: str
    token: int
    attempt: int
    bounds: tuple[Bound, ...]
    events: int
    on_gap: str
    up_to: int | None = None
    complete_until: int | None = None  # an event time; as the writers of its streams state

    @property
    def identity(self) -> str:
        """The name of its results. A group that is created again under the same name has others."""
        return f"{self.group_id}.{self.batch_id}"


class Held(NamedTuple):
    """The record of a batch that the caller holds: its state, and the rest that was split off.
    `has_outputs`: its attempts have recorded outputs. `awaited`: a checkpoint of its group waits
    for batches."""

    state: str
    rest: list[list[Bound]]
    has_outputs: bool
    awaited: bool


_COLUMNS = """b.token, b.state, b.rest, b.outputs IS NOT NULL AS has_outputs,
    EXISTS (SELECT FROM checkpoint c WHERE c.group_id = b.group_id AND c.state = 'waiting')
        AS awaited"""
_RECORD = text(
    f"SELECT {_COLUMNS} FROM reader_batch b WHERE b.group_id = :g AND b.batch_id = :b"  # noqa: S608 - constants
)
# The group is locked, so a batch does not change while this waits for the reader. A part of a query
# that nothing depends on would not run: so the rows that are locked are counted.
_HOLD = text(
    f"""WITH reader AS MATERIALIZED (
        SELECT FROM reader WHERE group_id = :g AND reader_id = :reader_id FOR NO KEY UPDATE
    )
    SELECT {_COLUMNS} FROM reader_batch b
    WHERE b.group_id = :g AND b.batch_id = :b AND (SELECT count(*) FROM reader) >= 0"""  # noqa: S608 - constants
)


def check_held(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch. Raises Fenced if it no longer belongs to the attempt, was
    abandoned or split."""
    return _not_split(batch, held_or_split(connection, batch))


def hold(connection: Connection, batch: Batch) -> Held:
    """Lock the reader of a batch, if it is still there, and return the batch's record, as
    `check_held`. Its group must be locked already."""
    return _not_split(batch, _record(connection, _HOLD, batch))


def held_or_split(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch, which the caller itself may have split. Raises Fenced if it was
    taken over or abandoned."""
    return _record(connection, _RECORD, batch)


def _not_split(batch: Batch, record: Held) -> Held:
    if record.state == "split":
        raise Fenced(
            "batch_split",
            f"batch {batch.batch_id} of reader group {batch.group} was split; read the two "
            "batches that replace it.",
        )
    return record


def _record(connection: Connection, statement: TextClause, batch: Batch) -> Held:
    given = {"g": batch.group_id, "b": batch.batch_id, "reader_id": batch.reader_id}
    row = connection.execute(statement, given).one_or_none()
    if row is not None and row.state == "abandoned":
        raise Fenced(
            "batch_abandoned",
            f"batch {batch.batch_id} of reader group {batch.group} was abandoned, because the "
            "group was reset or its reader was taken offline at a position; run the consumer "
            "again, which continues from there (Weir will delete what this attempt wrote).",
        )
    if row is None or row.token != batch.token:
        raise Fenced(
            "batch_taken_over",
            f"batch {batch.batch_id} of reader group {batch.group} no longer belongs to this "
            f"attempt of reader {batch.reader_id!r}, because a newer attempt or another reader has "
            "it, or the reader was taken offline; run the consumer again, which reads what is left "
            "(Weir will delete what this attempt wrote).",
        )
    rest = [list(map(Bound.of, part)) for part in row.rest]
    return Held(row.state, rest, row.has_outputs, row.awaited)
