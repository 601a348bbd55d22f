"""Checkpoints: the positions of a group under a name, and the events that they release.

Positions move only when batches are committed. An *instant* checkpoint is therefore a snapshot in
one transaction, which waits for nobody. A *barrier* checkpoint is the cut at which the group will
be when the batches that are open now are committed. Their bounds are recorded, so the cut is known
at once; the checkpoint is complete when they are committed. Readers continue meanwhile.
"""

import json
import logging
from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput, NotFound, WeirError
from weir.model.bounds import Bound
from weir.model.names import reader_group_name
from weir.queries.reader_groups.checkpoints import lifecycle as sql
from weir.reader_groups.checkpoints.records import (
    Checkpointed,
    record_positions,
    release_checkpoints,
    said_of,
)
from weir.reader_groups.locks import LockedGroup, lock_group_and_streams
from weir.reader_groups.positions import advance

log = logging.getLogger("weir.reader_groups")


def checkpoint(
    database: Database,
    group: str,
    *,
    name: str | None = None,
    barrier: bool = False,
    patience: float = 3600.0,
    request_id: str | None = None,
) -> Checkpointed | None:
    """Record the positions of a group as a checkpoint. A subscriber releases what lies before it.

    Without a `name` it is automatic. `barrier`: include the batches that are open now; the
    checkpoint waits for them up to `patience` seconds, this call does not.

    Returns None if an automatic one
    finds nothing to do: no position has moved since the newest checkpoint, or since the group was
    created, and nothing is left to release. Raises NotFound, InvalidInput for a wrong name, and
    Conflict if the name is taken or too many checkpoints wait already.
    """
    reader_group_name(group)
    if name is not None and not (
        isinstance(name, str) and 0 < len(name) <= 200 and name.isprintable()
    ):
        raise InvalidInput(
            "name_invalid",
            f"{name!r} is not a valid checkpoint name; use 1 to 200 characters that can be "
            "printed.",
        )
    request = Request[Checkpointed](
        request_id or "", "checkpoint", group, {"name": name, "barrier": barrier}
    )

    def work(connection: Connection) -> Checkpointed | None:
        # A release changes what retention may truncate, so the streams are locked too, and first.
        _, locked = lock_group_and_streams(connection, group)
        if request_id is not None and (before := request.result(connection)) is not None:
            return before
        batches = sql.open_batches(connection, group_id=locked.group_id) if barrier else []
        if batches:
            result = _wait(connection, locked, name, batches, patience)
        elif (recorded := _record(connection, locked, name)) is None:
            return None
        else:
            result = recorded
        return request.done(connection, result) if request_id is not None else result

    return database.transaction(work) if request_id is not None else commit_once(database, work)


def cancel_checkpoint(
    database: Database, group: str, name: str, *, request_id: str
) -> Checkpointed:
    """Cancel a checkpoint that waits. Raises NotFound, and Conflict if it does not wait."""
    request = Request[Checkpointed](request_id, "cancel_checkpoint", group, {"name": name})

    def work(connection: Connection) -> Checkpointed:
        _, locked = lock_group_and_streams(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        state = sql.state_of(connection, group_id=locked.group_id, name=name)
        if state is None:
            raise NotFound(
                "checkpoint_not_found",
                f"reader group {group} has no checkpoint {name!r}; the view weir.checkpoints "
                "lists them.",
            )
        if state != "waiting":
            raise Conflict(
                "checkpoint_not_waiting",
                f"checkpoint {name!r} of reader group {group} is {state}; only a waiting "
                "checkpoint can be cancelled.",
            )
        _end(connection, locked, [name], "cancelled")
        return request.done(connection, {"reader_group": group, "checkpoint": name})

    return database.transaction(work)


def settle_group(database: Database, group: str) -> None:
    """Settle the waiting checkpoints of a group after a commit. If that fails, the next run of
    `settle_all` does it."""
    try:
        database.transaction(partial(settle_group_in, group=group))
    except (WeirError, DBAPIError) as error:
        log.warning("checkpoints of group %s are completed later: %s", group, error)


def settle_group_in(connection: Connection, group: str) -> list[Checkpointed]:
    """Settle the waiting checkpoints of a group. Return those that are complete now."""
    _, locked = lock_group_and_streams(connection, group)
    released = locked.releases_at_checkpoints
    return [
        {"reader_group": group, "checkpoint": name, "released": released}
        for name in settle(connection, locked)
    ]


def settle(connection: Connection, group: LockedGroup) -> list[str]:
    """Complete the waiting checkpoints whose batches are all committed, cancel those of which a
    batch was abandoned, and time out those that have waited too long.

    Returns the names of the complete ones. In a transaction that has locked the group's streams and
    the group.
    """
    rows = sql.waiting(connection, group_id=group.group_id)
    _end(connection, group, [r.name for r in rows if r.lost], "cancelled")
    _end(
        connection, group, [r.name for r in rows if r.waits and r.late and not r.lost], "timed out"
    )
    done = [r for r in rows if not (r.waits or r.lost)]
    _end(connection, group, [r.name for r in done], "complete")
    return [r.name for r in done]


def _record(connection: Connection, group: LockedGroup, name: str | None) -> Checkpointed | None:
    """Record the positions; return None if they have not moved."""
    [recorded] = record_positions(connection, [group], name)
    if recorded.refused:
        raise _in_use(group, name)
    if recorded.checkpoint is None:
        return None
    if recorded.released:
        release_checkpoints(connection, [(group.group_id, recorded.checkpoint)])
    return said_of(recorded)


def _wait(
    connection: Connection,
    group: LockedGroup,
    name: str | None,
    batches: Sequence[sql.OpenBatch],
    patience: float,
) -> Checkpointed:
    """Record the cuts at which the group will be when these batches are committed, as a checkpoint
    that waits for them."""
    cuts = _cuts_after(connection, group, batches)
    settle(connection, group)  # one that waits no longer does not count
    _check_outstanding(connection, group)
    made = sql.wait(
        connection,
        group_id=group.group_id,
        name=name,
        cuts=json.dumps(cuts),
        batches=[one.batch_id for one in batches],
        patience=patience,
    )
    if made is None:
        raise _in_use(group, name)
    return {
        "reader_group": group.name,
        "checkpoint": made,
        "released": False,
        "waits_for": [f"batch {one.batch_id} of reader {one.reader_id}" for one in batches],
    }


def _in_use(group: LockedGroup, name: str | None) -> Conflict:
    if name is None:
        return Conflict(
            "checkpoint_exists",
            f"reader group {group.name} already has a checkpoint with the name that an automatic "
            "one gets at this moment; try again.",
        )
    return Conflict(
        "checkpoint_exists",
        f"reader group {group.name} already has a checkpoint {name!r}; choose another name.",
    )


def _cuts_after(
    connection: Connection, group: LockedGroup, batches: Sequence[sql.OpenBatch]
) -> dict[str, Cut]:
    """Return by stream id the cut of the group after these batches are committed."""
    # It makes the same step as their commits will, and rolls it back.
    attempt = connection.begin_nested()
    for one in batches:
        advance(connection, group, list(map(Bound.of, one.bounds)), one.reader_id)
    found = sql.cuts(connection, group_id=group.group_id)
    attempt.rollback()
    return found or {}


def _check_outstanding(connection: Connection, group: LockedGroup) -> None:
    row = sql.outstanding(connection, group_id=group.group_id)
    if row.waiting >= row.most:
        raise Conflict(
            "limit_reached",
            f"{row.waiting} checkpoints of reader group {group.name} are already waiting, such as "
            f"{row.name!r}; wait for one, or cancel it.",
        )


def _end(connection: Connection, group: LockedGroup, names: Sequence[str], state: str) -> None:
    if not names:
        return
    sql.end(connection, group_id=group.group_id, names=list(names), state=state)
    if state == "complete" and group.releases_at_checkpoints:
        for name in names:  # in the order in which they were requested
            release_checkpoints(connection, [(group.group_id, name)])
