"""An open batch, and the check that it still belongs to the attempt that reads it."""

from dataclasses import dataclass

from sqlalchemy import Connection

from weir.errors import Fenced
from weir.model.bounds import Bound
from weir.queries.reader_groups import batch as sql
from weir.queries.reader_groups.batch import Held


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


def check_held(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch. Raises Fenced if it no longer belongs to the attempt, was
    abandoned or split."""
    return _not_split(batch, held_or_split(connection, batch))


def hold(connection: Connection, batch: Batch) -> Held:
    """Lock the reader of a batch, if it is still there, and return the batch's record, as
    `check_held`. Its group must be locked already."""
    record = sql.hold(
        connection, group_id=batch.group_id, reader_id=batch.reader_id, batch_id=batch.batch_id
    )
    return _not_split(batch, _checked(batch, record))


def held_or_split(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch, which the caller itself may have split. Raises Fenced if it was
    taken over or abandoned."""
    return _checked(batch, sql.record(connection, group_id=batch.group_id, batch_id=batch.batch_id))


def _not_split(batch: Batch, record: Held) -> Held:
    if record.state == "split":
        raise Fenced(
            "batch_taken_over",
            f"batch {batch.batch_id} of reader group {batch.group} was split; read the two "
            "batches that replace it.",
        )
    return record


def _checked(batch: Batch, row: Held | None) -> Held:
    if row is not None and row.state == "abandoned":
        raise Fenced(
            "batch_taken_over",
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
    return row
