"""Check that a batch still belongs to the attempt that reads it."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.errors import Fenced
from weir.model.bounds import Bound
from weir.reader_groups.new_batch import Batch


class Held(NamedTuple):
    """The record of a batch that the caller holds: its state, and the rest that was split off."""

    state: str
    rest: list[list[Bound]]


def check_held(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch. Raises Fenced if it was taken over, abandoned or split."""
    held = held_or_split(connection, batch)
    if held.state == "split":
        raise Fenced(
            "batch_split",
            f"batch {batch.batch_id} of reader group {batch.group} was split; read the two "
            "batches that replace it.",
        )
    return held


def held_or_split(connection: Connection, batch: Batch) -> Held:
    """Return the record of a batch, which the caller itself may have split. Raises Fenced if it was
    taken over or abandoned."""
    row = connection.execute(
        text("SELECT token, state, rest FROM reader_batch WHERE group_id = :g AND batch_id = :b"),
        {"g": batch.group_id, "b": batch.batch_id},
    ).one_or_none()
    if row is not None and row.state == "abandoned":
        raise Fenced(
            "batch_abandoned",
            f"batch {batch.batch_id} of reader group {batch.group} was abandoned: the group was "
            "reset, or its reader taken offline at a position; Weir will delete what this attempt "
            "wrote.",
        )
    if row is None or row.token != batch.token:
        raise Fenced(
            "batch_taken_over",
            f"batch {batch.batch_id} of reader group {batch.group} was taken over from reader "
            f"{batch.reader_id!r}; Weir will delete what this attempt wrote.",
        )
    return Held(row.state, [list(map(Bound.of, part)) for part in row.rest])
