"""Record complete checkpoints of one or many locked groups, and release what lies before them."""

from collections.abc import Iterable, Sequence
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.queries.reader_groups.checkpoints import records as sql
from weir.reader_groups.locks import LockedGroup


class Checkpointed(TypedDict):
    """A checkpoint of a group: its name, whether it releases events now (not said of one that is
    cancelled), and of one that waits its batches, as texts."""

    reader_group: str
    checkpoint: str
    released: NotRequired[bool]
    waits_for: NotRequired[list[str]]


def record_positions(
    connection: Connection, groups: Sequence[LockedGroup], name: str | None = None
) -> list[sql.Recorded]:
    """Record the positions of groups, in a transaction that has locked their streams and them.

    Without a `name` the checkpoints are automatic, and Weir records none for a group that has not
    moved (`checkpoint` is None). If `released` is true, the caller must pass the checkpoint to
    `release_checkpoints`; if `refused`, the name is in use.
    """
    return sql.record(connection, ids=[group.group_id for group in groups], name=name)


def said_of(recorded: sql.Recorded) -> Checkpointed:
    """Return what a report says of a checkpoint that was recorded."""
    assert recorded.checkpoint is not None
    return {
        "reader_group": recorded.reader_group,
        "checkpoint": recorded.checkpoint,
        "released": recorded.released,
    }


def release_checkpoints(
    connection: Connection, checkpoints: Iterable[tuple[int, str | None]]
) -> None:
    """Release to retention what complete checkpoints have passed: pairs of a group's id and a
    name, each of another group, which releases at its checkpoints.

    One that waited may be complete after a later one: what either has passed is released.
    """
    if pairs := list(checkpoints):
        groups, names = zip(*pairs, strict=True)
        sql.release(connection, groups=list(groups), names=list(names))
