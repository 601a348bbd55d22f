"""Update a reader group: its configuration, its streams and its pins.

An update is one transaction that has locked the streams and the group. It increases the generation;
a caller that names an older one is refused (semantics 11.8).
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.controller.retention_queue import mark_retention_due
from weir.database import columns
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.model.names import StreamName
from weir.queries.reader_groups.groups import update as sql
from weir.reader_groups.event_time_points import say_between
from weir.reader_groups.group_streams import group_streams
from weir.reader_groups.groups.lifecycle import enter_streams, loaded_ends
from weir.reader_groups.groups.pins import Pin, check_disjoint, replace_pins
from weir.reader_groups.groups.releases import releasing
from weir.reader_groups.groups.span import find_span, without_truncated
from weir.reader_groups.locks import LockedGroup, lock_group_and_streams
from weir.reader_groups.positions import positions_of


class GroupUpdated(TypedDict):
    """A group that was changed. `generation`: the new one. `settings`: all, by name. `deletes`,
    `reads`, `missing`: as of `GroupCreated`; no lines if neither the streams nor `subscriber`
    changed."""

    reader_group: str
    generation: int
    settings: dict[str, object]
    deletes: list[str]
    reads: list[str]
    missing: list[str]


def update_reader_group(
    database: Database,
    name: str,
    *,
    generation: int | None = None,
    streams: Sequence[StreamName] | None = None,
    start: str = "head",
    pins: Sequence[Pin] | None = None,
    allow_loss: bool = False,
    allow_truncated: bool = False,
    request_id: str,
    **changes: object,
) -> GroupUpdated:
    """Change the given settings of a group's `GroupConfiguration`, its streams or its pins.

    `streams`: replaces the streams that the group reads; it reads new ones from `start`. `pins`:
    replaces the pins. A group that becomes a subscriber holds back what it has not read.

    Raises NotFound; Truncated if events after `start` were truncated (unless
    `allow_truncated`: then it begins at the head); Conflict for another `generation`, if an open
    batch reads a stream that is to be removed, or if groups would lose unread events by the change
    (unless `allow_loss`); and InvalidInput for a wrong setting, for pins that overlap, and for pins
    of a stream that the group does not read.
    """
    check_disjoint(pins or ())
    request = Request[GroupUpdated](
        request_id, "update_reader_group", name,
        {**changes, "generation": generation, "start": start, "allow_loss": allow_loss,
         "allow_truncated": allow_truncated,
         "streams": streams and sorted(map(str, streams)),
         "pins": pins and sorted(map(str, pins))},
    )  # fmt: skip

    def work(connection: Connection) -> GroupUpdated:
        named = list(dict.fromkeys(streams or ()))
        locked, group = lock_group_and_streams(connection, name, named)
        if (before := request.result(connection)) is not None:
            return before
        group.must_be_of(generation)
        old, new = group.configuration, group.configuration.changed(changes)
        with releasing(connection, locked, name, allow_loss) as deletes:
            sql.store(connection, group_id=group.group_id, **columns.parameters(new))
            reads: list[str] = []
            missing: list[str] = []
            if streams is not None:
                more = _change_streams(connection, group, locked, named)
                if more:
                    span = find_span(connection, more, start, allow_truncated=allow_truncated)
                    enter_streams(connection, group.group_id, new.subscriber, span.starts, {})
                    sql.touch(connection, group_id=group.group_id)
                    reads = say_between(connection, more, span.starts, {}, start)
                    missing = span.missing
            if new.subscriber and not old.subscriber:
                missing += _truncated_unread(connection, group, locked, allow_truncated)
            sql.protect(
                connection,
                group_id=group.group_id,
                subscriber=new.subscriber,
                anew=new.release != old.release,
            )
        if streams is None and new.subscriber == old.subscriber:
            deletes.clear()
        mark_retention_due(connection, [stream.stream_id for stream in locked])
        if pins is not None:
            known = {s.stream_id for s in group_streams(connection, group.name)}
            here = {s.name: s.stream_id for s in locked if s.stream_id in known}
            replace_pins(connection, group, here, pins)
        return request.done(
            connection,
            {
                "reader_group": name, "generation": group.generation + 1,
                "settings": asdict(new),
                "deletes": deletes, "reads": reads, "missing": missing,
            },
        )  # fmt: skip

    return database.transaction(work)


def _change_streams(
    connection: Connection,
    group: LockedGroup,
    locked: Sequence[LockedStream],
    named: Sequence[StreamName],
) -> list[LockedStream]:
    """Let a group read no other streams than these, and return the new ones."""
    if not named:
        raise InvalidInput(
            "group_unsuitable",
            f"reader group {group.name} would have no stream left to read; keep one, or delete "
            "the group.",
        )
    known = {s.stream_id for s in group_streams(connection, group.name)}
    wanted = {stream.stream_id for stream in locked if stream.name in named}
    if sql.being_read(connection, group_id=group.group_id, wanted=sorted(wanted)):
        raise Conflict(
            "batch_open",
            f"reader group {group.name} can't stop reading a stream while an open batch reads it; "
            "wait until the batch is committed.",
        )
    sql.remove_streams(connection, group_id=group.group_id, ids=sorted(wanted))
    return [stream for stream in locked if stream.stream_id in wanted - known]


def _truncated_unread(
    connection: Connection, group: LockedGroup, locked: Sequence[LockedStream], allowed: bool
) -> list[str]:
    """Return lines that say what was truncated before a group has read it, which becomes a
    subscriber too late for that. Raises Truncated unless that is allowed."""
    known = {s.stream_id for s in group_streams(connection, group.name)}
    here = [stream for stream in locked if stream.stream_id in known]
    at, ends = positions_of(connection, group, here), loaded_ends(connection, group)
    lines = without_truncated(connection, here, at, ends, allow_truncated=allowed).missing
    return [line.rpartition("; ")[0] for line in lines]  # its positions stay where they are
