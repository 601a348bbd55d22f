"""Create, fork and delete reader groups, and look up what they read and where they end."""

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream, lock_streams
from weir.controller.queries import Cut
from weir.controller.retention_queue import mark_retention_due
from weir.database import columns
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import StreamName, reader_group_name
from weir.model.stream_cut import first_behind, join
from weir.queries.reader_groups.groups import lifecycle as sql
from weir.reader_groups.event_time_points import say_between
from weir.reader_groups.groups.releases import releasing
from weir.reader_groups.groups.span import find_span, without_truncated
from weir.reader_groups.locks import LockedGroup, lock_group_and_streams
from weir.reader_groups.outputs.records import discard_outputs
from weir.reader_groups.positions import positions_of
from weir.reader_groups.starting_points import Cuts, find_cuts


class GroupCreated(TypedDict):
    """A group that was created. `start`, `end`: by stream the cut; no end is empty.

    Lines that say: `deletes`: what retention deletes of the streams, and what this group releases
    by where it begins; `reads`: how many events lie between event times, if these are given;
    `missing`: what was truncated before the head, if it begins there."""

    reader_group: str
    subscriber: bool
    start: dict[str, Cut]
    end: dict[str, Cut]
    deletes: list[str]
    reads: NotRequired[list[str]]
    missing: list[str]


class GroupDeleted(TypedDict):
    """A group that was deleted, or would be. `deletes`: lines that say what is released by that.
    Of a dry run also its `position` (by stream the cut), and how many `checkpoints` and open
    `batches` it has."""

    reader_group: str
    deletes: NotRequired[list[str]]
    position: NotRequired[dict[str, Cut]]
    checkpoints: NotRequired[int]
    batches: NotRequired[int]
    dry_run: NotRequired[bool]


def create_reader_group(
    database: Database,
    name: str,
    streams: Sequence[StreamName],
    *,
    start: str = "head",
    end: str = "",
    allow_loss: bool = False,
    allow_truncated: bool = False,
    request_id: str,
    **configuration: object,
) -> GroupCreated:
    """Create a group that reads `streams` from `start` on, up to `end` if that is given.

    Both are as in `weir.reader_groups.starting_points`. `configuration`: settings of
    `GroupConfiguration`. A subscriber holds retention back from this transaction on, from its start
    cut.

    Raises NotFound for a stream, Truncated if events between start and end were truncated
    (unless `allow_truncated`: then it begins at the head), InvalidInput for wrong settings; and
    Conflict if the group exists, or if others would lose unread events by what it releases (unless
    `allow_loss`).
    """
    reader_group_name(name)
    wanted = GroupConfiguration().changed(configuration)
    if not streams:
        raise InvalidInput(
            "group_unsuitable",
            f"reader group {name} would have no stream to read; name at least one.",
        )
    request = Request[GroupCreated](
        request_id,
        "create_reader_group",
        name,
        {
            "streams": sorted(map(str, streams)),
            "start": start,
            "end": end,
            "allow_loss": allow_loss,
            "allow_truncated": allow_truncated,
            **asdict(wanted),
        },
    )

    def work(connection: Connection) -> GroupCreated:
        locked = lock_streams(connection, names=list(dict.fromkeys(streams)))
        if (before := request.result(connection)) is not None:
            return before
        starts, ends, missing = find_span(
            connection, locked, start, end, allow_truncated=allow_truncated
        )
        made = create_in(connection, name, locked, starts, ends, wanted, allow_loss, missing)
        reads = say_between(connection, locked, starts, ends, start, end)
        return request.done(connection, {**made, "reads": reads})

    return database.transaction(work)


def create_in(
    connection: Connection,
    name: str,
    streams: Sequence[LockedStream],
    starts: Cuts,
    ends: Cuts,
    configuration: GroupConfiguration,
    allow_loss: bool = False,
    missing: Sequence[str] = (),
) -> GroupCreated:
    """Create a group that reads a span of streams that are locked, of which nothing is truncated.

    Returns (without `reads`) and raises as `create_reader_group`."""
    for stream in streams:
        start, end = starts[stream.stream_id], ends.get(stream.stream_id)
        if end is not None and (behind := first_behind(start, end)) is not None:
            raise InvalidInput(
                "position_invalid",
                f"the end is before the start in segment {behind.name} of stream {stream.name}; "
                "choose a later end.",
            )
    with releasing(connection, streams, name, allow_loss) as deletes:
        _enter(connection, name, starts, ends, configuration)
    return {
        "reader_group": name,
        "subscriber": configuration.subscriber,
        "start": {str(s.name): starts[s.stream_id].to_json() for s in streams},
        "end": {str(s.name): ends[s.stream_id].to_json() for s in streams if s.stream_id in ends},
        "deletes": deletes,
        "missing": list(missing),
    }


def _enter(
    connection: Connection, name: str, starts: Cuts, ends: Cuts, configuration: GroupConfiguration
) -> None:
    group_id = sql.insert(connection, name=name, **columns.parameters(configuration))
    if group_id is None:
        raise Conflict("group_exists", f"reader group {name} already exists; choose another name.")
    enter_streams(connection, group_id, configuration.subscriber, starts, ends)


def enter_streams(
    connection: Connection, group_id: int, subscriber: bool, starts: Cuts, ends: Cuts
) -> None:
    """Add streams to a group, with these cuts as its positions."""
    sql.enter(
        connection,
        group_id=group_id,
        subscriber=subscriber,
        cuts=json.dumps(
            [
                {"stream": s, "start_cut": cut.to_json()}
                | ({"end_cut": ends[s].to_json()} if s in ends else {})
                for s, cut in starts.items()
            ]
        ),
    )


def fork_reader_group(
    database: Database,
    name: str,
    new_name: str,
    *,
    at: str = "",
    subscriber: bool = True,
    allow_loss: bool = False,
    allow_truncated: bool = False,
    request_id: str,
) -> GroupCreated:
    """Create a group with the streams, the positions, the end and the settings of another one, to
    replay or to debug without changing that. Its pins are not copied.

    `at`: begin at this starting point instead, such as `checkpoint NAME` of the other group.
    `subscriber`: whether retention waits for the new group, whatever the other one is; by default
    it does, as for any new group. Returns and raises as `create_reader_group` does.
    """
    reader_group_name(new_name)
    request = Request[GroupCreated](
        request_id, "fork_reader_group", new_name,
        {"of": name, "at": at, "subscriber": subscriber, "allow_loss": allow_loss,
         "allow_truncated": allow_truncated},
    )  # fmt: skip

    def work(connection: Connection) -> GroupCreated:
        locked, group = lock_group_and_streams(connection, name)
        if (before := request.result(connection)) is not None:
            return before
        at_word = bool(at.strip())
        cuts = (
            find_cuts(connection, locked, at, group.group_id)
            if at_word
            else positions_of(connection, group, locked)
        )
        ends = {s: end for s, end in loaded_ends(connection, group).items() if s in cuts}
        if not at_word:  # a truncation may have moved the positions beyond the end
            ends = {stream_id: join(cuts[stream_id], end) for stream_id, end in ends.items()}
        span = without_truncated(
            connection, locked, cuts, ends, at, allow_truncated=allow_truncated
        )
        settings = replace(group.configuration, subscriber=subscriber)
        made = create_in(
            connection, new_name, locked, span.starts, span.ends, settings, allow_loss, span.missing
        )
        reads = say_between(connection, locked, span.starts, span.ends, at)
        return request.done(connection, {**made, "reads": reads})

    return database.transaction(work)


def delete_reader_group(
    database: Database, name: str, *, dry_run: bool = False, request_id: str
) -> GroupDeleted:
    """Delete a group with its positions, batches and checkpoints; it holds nothing back afterwards.

    The outputs of its committed batches are kept, those of open ones become garbage. `dry_run`:
    change nothing. Raises NotFound.
    """
    request = Request[GroupDeleted](request_id, "delete_reader_group", name, {})

    def work(connection: Connection) -> GroupDeleted:
        locked, group = lock_group_and_streams(connection, name)
        if dry_run:
            owned = sql.owned(connection, group_id=group.group_id)
            with connection.begin_nested() as tried:
                with releasing(connection, locked, name, allow_loss=True) as deletes:
                    delete_in(connection, group.group_id)
                tried.rollback()
            return {
                "reader_group": name, "deletes": deletes, "position": owned.position,
                "checkpoints": owned.checkpoints, "batches": owned.batches,
            }  # fmt: skip
        mark_retention_due(connection, [stream.stream_id for stream in locked])
        with releasing(connection, locked, name, allow_loss=True) as deletes:
            delete_in(connection, group.group_id)
        return request.done(connection, {"reader_group": name, "deletes": deletes})

    return database.transaction(lambda c: request.deleted(c, work, dry_run=dry_run))


def delete_in(connection: Connection, group_id: int) -> None:
    """Delete a locked group as `delete_reader_group` does."""
    discard_outputs(connection, group_id)
    sql.delete(connection, group_id=group_id)


def loaded_ends(connection: Connection, group: LockedGroup) -> Cuts:
    """Return the end of a group by stream id, for the streams in which it has one. An end never
    lies beyond the tail."""
    rows = sql.ends(connection, group_id=group.group_id)
    return {row.stream_id: load_cuts(connection, row.stream_id, row.end_cut)[0] for row in rows}


def end_of_group(connection: Connection, name: str, not_delivered: Collection[int] = ()) -> str:
    """Return a sentence if the group has read all that it will ever have to read, else nothing.

    `not_delivered`: ids of streams that do not matter, as nothing of them is delivered.
    """
    streams = sql.at_end(connection, name=name, not_delivered=list(not_delivered))
    if not streams:
        return ""
    return f"reader group {name} is at its end: it has read {streams}, and nothing will follow."
