"""Truncate a stream at a starting point that a person names, or report what that would truncate."""

from collections.abc import Callable
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.cuts import check_cut, load_cuts
from weir.controller.locks import LockedStream
from weir.controller.missing import missing_within
from weir.controller.queries import Cut
from weir.controller.retention_queue import mark_retention_due
from weir.controller.truncation import parse_cut
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import InvalidInput, NotFound, counted
from weir.front_ends import give, leave_out
from weir.model.names import StreamName
from weir.model.stream_cut import StreamCut, first_behind
from weir.queries.retention import manual_truncation as sql
from weir.reader_groups.batches.data_loss import unread_events_lost, warn_of_lost
from weir.reader_groups.locks import lock_stream_and_groups
from weir.reader_groups.starting_points import find_cuts
from weir.retention.receipts import truncate_at

# Returns the cut of a locked stream that a text means. Raises InvalidInput.
FindCut = Callable[[Connection, LockedStream], StreamCut]


class Truncation(TypedDict):
    """What was truncated of a stream, or would be.

    `head`: the cut. `events`, `bytes`: as first committed. `files`: how many became garbage.
    `lost`, `lost_to_others`: how many events each subscriber and each other group had not read.
    `already`: if the head is there already, a sentence that says who truncated up to it."""

    stream: str
    head: Cut
    events: int
    bytes: int
    files: int
    lost: dict[str, int]
    lost_to_others: dict[str, int]
    already: str


def truncate(
    database: Database,
    name: StreamName,
    cut: str,
    *,
    request_id: str,
    find: FindCut | None = None,
    dry_run: bool = False,
) -> Truncation:
    """Move the head to `cut` (`0.0=12, 5.1=future`, or JSON), whatever subscribers and limits say.

    `find`: returns the cut that the text means, if it is not a cut. `dry_run`: change nothing, and
    return what would be truncated and lost.

    Raises InvalidInput with the segment for a cut that is invalid or before the head, Conflict for
    a sealed stream, NotFound.
    """
    request = Request[Truncation](request_id, "truncate", str(name), {"cut": cut})

    def work(connection: Connection) -> Truncation:
        # With the groups locked, nobody plans a batch from the old head and opens it afterwards.
        stream = lock_stream_and_groups(connection, name)
        if dry_run:
            with connection.begin_nested() as nested:
                result = _truncate(connection, stream, cut, find, request_id)
                nested.rollback()
            return result
        if (before := request.result(connection)) is not None:
            return before
        result = _truncate(connection, stream, cut, find, request_id)
        mark_retention_due(connection, [stream.stream_id])
        warn_of_lost(stream, result["lost"], "truncated by hand")
        return request.done(connection, result)

    return database.transaction(work)


def _truncate(
    connection: Connection, stream: LockedStream, cut: str, find: FindCut | None, request_id: str
) -> Truncation:
    stream.must_be_active()
    wanted = find(connection, stream) if find else parse_cut(connection, stream, cut)
    check_cut(connection, stream.stream_id, wanted)
    (head,) = load_cuts(connection, stream.stream_id, stream.head)
    if (behind := first_behind(head, wanted)) is not None:
        began = head.offsets.get(behind, "after it")
        already = _nothing_left(connection, stream, wanted)
        raise InvalidInput(
            "position_invalid",
            f"the cut is before the head of stream {stream.name} in segment {behind.name}: it has "
            f"offset {wanted.offsets[behind]}, and the head is at {began}"
            f"{already and f' ({already})'}; give a cut at or after the head.",
        )
    already = "" if stream.head != wanted.to_json() else _nothing_left(connection, stream, wanted)
    lost = unread_events_lost(connection, stream, wanted)
    others = unread_events_lost(connection, stream, wanted, subscribers=False)
    reason = f"truncated by hand: {request_id.removeprefix('by hand/')}"
    freed = truncate_at(
        connection, stream, wanted, rule="by_hand", reason=reason, lost=lost | others,
        request_id=request_id,
    )  # fmt: skip
    return {
        "stream": str(stream.name), "head": wanted.to_json(), "lost": lost,
        "lost_to_others": others, "already": already,
        "events": freed.events, "bytes": freed.bytes, "files": freed.files,
    }  # fmt: skip


def _nothing_left(connection: Connection, stream: LockedStream, till: StreamCut) -> str:
    """Return a sentence that nothing is left before a cut at or before the head, and who truncated
    it; empty if there never was anything."""
    gone = missing_within(connection, stream.stream_id, None, till)
    return "" if gone is None else f"nothing is left to truncate there: {gone}"


def truncate_before(
    database: Database,
    name: StreamName,
    starting_point: str,
    group: str = "",
    *,
    dry_run: bool,
    request_id: str,
) -> Truncation:
    """Truncate all events of a stream before a starting point, read or not.

    `starting_point`: `position` or `checkpoint NAME`, both of `group`, or one of those in
    `weir.reader_groups.starting_points`. `dry_run`: change nothing, and return what would be
    truncated. Returns and raises what `truncate` does; also raises NotFound if the group does not
    read the stream, and InvalidInput if no group is named whose position or checkpoint is meant.
    """

    def find(connection: Connection, stream: LockedStream) -> StreamCut:
        wanted = starting_point.strip()
        of_group = wanted == "position" or wanted.split(" ", 1)[0] == "checkpoint"
        if of_group and not group.strip():
            raise InvalidInput(
                "position_invalid",
                f"{wanted!r} belongs to a reader group; {give(reader_group='GROUP')}, too.",
            )
        if not of_group:
            if group.strip():
                raise InvalidInput(
                    "position_invalid",
                    f"the starting point {wanted!r} does not depend on reader group "
                    f"{group.strip()}; {leave_out('reader_group')}, or write position or "
                    "checkpoint NAME.",
                )
            return find_cuts(connection, [stream], wanted)[stream.stream_id]
        row = sql.position(connection, group=group.strip(), stream_id=stream.stream_id)
        if row is None:
            raise NotFound(
                "group_not_found",
                f"no reader group {group.strip()} reads stream {stream.name}; the view weir.lag "
                "lists those that do.",
            )
        if wanted == "position":
            return load_cuts(connection, stream.stream_id, row.position)[0]
        return find_cuts(connection, [stream], wanted, row.group_id)[stream.stream_id]

    written = f"{starting_point} of {group}" if group else starting_point
    return truncate(database, name, written, request_id=request_id, find=find, dry_run=dry_run)


def in_words(done: Truncation, *, dry_run: bool) -> list[str]:
    """Return sentences that say what was truncated (`dry_run`: would be), and which groups
    lost unread events by it. `done`: the result of `truncate_before`."""
    truncates, loses, becomes = "truncated", "lost", "is"
    if dry_run:
        truncates, loses, becomes = "would truncate", "would lose", "would be"
    events, size, files = done["events"], done["bytes"], done["files"]
    lines = [
        f"{truncates} {counted(events, 'event')} of stream {done['stream']} ({size:,} bytes; "
        f"{counted(files, 'whole file')}); its head {becomes} {_shown(done['head'])}"
    ]
    for kind, losers in (("subscriber", done["lost"]), ("reader group", done["lost_to_others"])):
        lines += [
            f"{kind} {group} {loses} {counted(count, 'event')} that it has not read"
            for group, count in sorted(losers.items())
        ]
    if done["already"]:
        lines = [done["already"]]
    elif not done["lost"] and not done["lost_to_others"]:
        lines.append(f"no reader group {loses} an event that it has not read")
    if dry_run:
        lines.append(f"nothing was truncated; to do it, {give(dry_run=False)}")
    return lines


def _shown(head: Cut) -> str:
    return ", ".join(f"{segment}={offset}" for segment, offset in head.items())
