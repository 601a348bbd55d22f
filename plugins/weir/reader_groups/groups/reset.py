"""Reset a reader group: move its positions to a starting point."""

import json
from collections.abc import Sequence
from typing import NamedTuple, NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.queries import Cut
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict
from weir.front_ends import give
from weir.model.stream_cut import at_or_before, meet
from weir.queries.reader_groups.groups import reset as sql
from weir.reader_groups.event_time_points import say_between
from weir.reader_groups.groups.consumers import declared_consumer
from weir.reader_groups.groups.lifecycle import loaded_ends
from weir.reader_groups.groups.releases import releasing
from weir.reader_groups.groups.span import without_truncated
from weir.reader_groups.locks import LockedGroup, lock_group_and_streams
from weir.reader_groups.outputs.records import discard_outputs
from weir.reader_groups.starting_points import Cuts, find_cuts


class GroupReset(TypedDict):
    """A group that was reset, or would be. `generation`: the new one. `position`: by stream the
    cut. `deletes`, `reads`, `missing`: as of `GroupCreated`. Of a dry run also by stream how many
    events it would read `again`, its `outputs`, and whether a group `loses` unread events by it."""

    reader_group: str
    generation: NotRequired[int]
    position: dict[str, Cut]
    deletes: list[str]
    reads: NotRequired[list[str]]
    missing: list[str]
    again: NotRequired[dict[str, int]]
    outputs: NotRequired[list[str]]
    loses: NotRequired[bool]
    dry_run: NotRequired[bool]


class _Tried(NamedTuple):
    again: dict[str, int]
    outputs: list[str]
    deletes: list[str]
    loses: bool


def reset_reader_group(
    database: Database, name: str, to: str, *, allow_repeat: bool = False,
    allow_loss: bool = False, allow_truncated: bool = False, dry_run: bool = False,
    request_id: str,
) -> GroupReset:  # fmt: skip
    """Move the positions of a group in all its streams to a starting point, and abandon its open
    batches.

    `to`: `start` (where the group began) or one of `weir.reader_groups.starting_points`. Readers
    must join again. `dry_run`: change nothing.

    Raises Truncated for a position below the head (unless `allow_truncated`: then it is the head);
    and Conflict if events that are committed would be read again (unless `allow_repeat`), or if
    other groups would lose unread events by what is released (unless `allow_loss`).
    """
    request = Request[GroupReset](
        request_id, "reset_reader_group", name,
        {"to": to, "allow_repeat": allow_repeat, "allow_loss": allow_loss,
         "allow_truncated": allow_truncated},
    )  # fmt: skip

    def work(connection: Connection) -> GroupReset:
        locked, group = lock_group_and_streams(connection, name)
        if not dry_run and (before := request.result(connection)) is not None:
            return before
        rows = sql.places(connection, group_id=group.group_id)
        now: Cuts = {}
        starts: Cuts = {}
        back_to_start = to.strip() == "start"
        for row in rows:
            if any(stream.stream_id == row.stream_id for stream in locked):
                (now[row.stream_id],) = load_cuts(connection, row.stream_id, row.cut)
                if back_to_start:
                    (starts[row.stream_id],) = load_cuts(connection, row.stream_id, row.start_cut)
        cuts = starts if back_to_start else find_cuts(connection, locked, to, group.group_id)
        ends = loaded_ends(connection, group)
        cuts, _, missing = without_truncated(
            connection, locked, cuts, ends, to, allow_truncated=allow_truncated
        )
        back = [
            str(s.name) for s in locked if not at_or_before(now[s.stream_id], cuts[s.stream_id])
        ]
        if back and not allow_repeat:
            raise Conflict(
                "events_would_repeat",
                f"reader group {name} has already read past this position in {', '.join(back)}, "
                f"so it would read committed events again; {give(allow_repeat=True)} if you want "
                "that.",
            )
        if dry_run:
            with connection.begin_nested() as tried:
                found = _tried(connection, locked, group, cuts, allow_loss)
                tried.rollback()
            position = {str(s.name): cuts[s.stream_id].to_json() for s in locked}
            reads = say_between(connection, locked, cuts, ends, to)
            return {
                "reader_group": name, "position": position, "missing": missing, "reads": reads,
                "again": found.again, "outputs": found.outputs, "deletes": found.deletes,
                "loses": found.loses,
            }  # fmt: skip
        with releasing(connection, locked, name, allow_loss) as deletes:
            _move(connection, group, cuts)
        mark_retention_due(connection, cuts)
        reads = say_between(connection, locked, cuts, ends, to)
        return request.done(
            connection,
            {
                "reader_group": name,
                "generation": group.generation + 1,
                "position": {str(s.name): cuts[s.stream_id].to_json() for s in locked},
                "deletes": deletes,
                "reads": reads,
                "missing": missing,
            },
        )

    return database.transaction(work)


def _tried(
    connection: Connection,
    locked: Sequence[LockedStream],
    group: LockedGroup,
    cuts: Cuts,
    allow_loss: bool,
) -> _Tried:
    """Move the positions, and return what that repeats and releases."""
    outputs = declared_consumer(connection, group.name).get("outputs", [])
    written = sql.outputs(connection, group=group.name)
    outputs = sorted({one.split()[0] for one in outputs} | {f"parquet:{one}" for one in written})
    before = _unread(connection, group.name)
    with releasing(connection, locked, group.name, allow_loss) as deletes:
        _move(connection, group, cuts)
    after = _unread(connection, group.name)
    more = {stream: after[stream] - before.get(stream, 0) for stream in after}
    again = {stream: count for stream, count in more.items() if count > 0}
    loses = any(" loses " in line for line in deletes)
    return _Tried(again, outputs, list(deletes), loses)


def _unread(connection: Connection, name: str) -> dict[str, int]:
    return {row.stream: row.unread_events for row in sql.unread(connection, group=name)}


def _move(connection: Connection, group: LockedGroup, cuts: Cuts) -> None:
    """Move the positions to other cuts, free all segments and abandon all open batches. What the
    group has released moves too, but never forward if it releases by hand."""
    streams = sorted(cuts)
    discard_outputs(connection, group.group_id)
    released = _released(connection, group, cuts) if group.configuration.release == "manual" else {}
    sql.leave(
        connection,
        group_id=group.group_id,
        ids=streams,
        cuts=json.dumps([{"stream_id": s, "cut": c.to_json()} for s, c in cuts.items()]),
    )
    sql.remove_readers(connection, group_id=group.group_id)
    sql.place(
        connection,
        group_id=group.group_id,
        cuts=json.dumps(
            [
                {"stream_id": s, "cut": c.to_json(), "released": released.get(s, c).to_json()}
                for s, c in cuts.items()
            ]
        ),
    )


def _released(connection: Connection, group: LockedGroup, cuts: Cuts) -> Cuts:
    """Return by stream id the lower bound of these cuts and of what the group has released."""
    rows = sql.released(connection, group_id=group.group_id, ids=sorted(cuts))
    return {
        row.stream_id: meet(
            [cuts[row.stream_id], *load_cuts(connection, row.stream_id, row.released_cut)]
        )
        for row in rows
    }
