"""Truncation: moving the head, exact to the event (semantics 10). Files wholly below it become
garbage.
"""

import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import check_cut, load_cuts, segments_named
from weir.controller.locks import LockedStream, lock_stream_and_groups
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import InvalidInput
from weir.model.names import StreamName
from weir.model.stream_cut import StreamCut, first_behind

log = logging.getLogger("weir.truncation")


@dataclass(frozen=True)
class Freed:
    """What a move of the head freed."""

    events: int
    bytes: int  # as first committed
    files: int


# Returns the cut of a locked stream that a text means. Raises InvalidInput.
FindCut = Callable[[Connection, LockedStream], StreamCut]


def truncate(
    database: Database,
    name: StreamName,
    cut: str,
    *,
    request_id: str,
    find: FindCut | None = None,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Move the head to `cut` (`0.0=12, 5.1=future`, or JSON), whatever subscribers and limits say.

    `find`: returns the cut that the text means, if it is not a cut. `dry_run`: change nothing.

    Returns the head, the events, bytes and files that were freed, and how many events each
    subscriber (`lost`) and each other group (`lost_to_others`) had not read. Raises InvalidInput
    with the segment for a cut that is invalid or behind the head, Conflict for a sealed stream,
    NotFound.
    """
    request = Request(request_id, "truncate", str(name), {"cut": cut})

    def work(connection: Connection) -> dict[str, Any]:
        # With the groups locked, nobody plans a batch from the old head and opens it afterwards.
        stream = lock_stream_and_groups(connection, name)
        if dry_run:
            with connection.begin_nested() as nested:
                result = _truncate(connection, stream, cut, find)
                nested.rollback()
            return result
        if (before := request.result(connection)) is not None:
            return before
        result = _truncate(connection, stream, cut, find)
        mark_retention_due(connection, [stream.stream_id])
        warn_of_lost(stream, result["lost"], "truncated by hand")
        return request.done(connection, result)

    return database.transaction(work)


def _truncate(
    connection: Connection, stream: LockedStream, cut: str, find: FindCut | None
) -> dict[str, Any]:
    stream.must_be_active()
    wanted = find(connection, stream) if find else parse_cut(connection, stream, cut)
    check_cut(connection, stream.stream_id, wanted)
    (head,) = load_cuts(connection, stream.stream_id, stream.head)
    if (behind := first_behind(head, wanted)) is not None:
        began = head.offsets.get(behind, "after it")
        raise InvalidInput(
            "cut_before_head",
            f"the cut is before the head of stream {stream.name} in segment {behind.name}: it has "
            f"offset {wanted.offsets[behind]}, and the head is at {began}; give a cut at or after "
            "the head.",
        )
    lost = unread_events_lost(connection, stream, wanted)
    others = unread_events_lost(connection, stream, wanted, subscribers=False)
    freed = move_head(connection, stream, wanted)
    return {
        "stream": str(stream.name), "head": wanted.to_json(), "lost": lost,
        "lost_to_others": others, **freed.__dict__,
    }  # fmt: skip


def parse_cut(connection: Connection, stream: LockedStream, given: str) -> StreamCut:
    """Return the cut that a person typed. Raises InvalidInput naming a segment that does
    not exist.
    """
    names = re.findall(r"\d+\.\d+", given)
    return StreamCut.parse(given, segments_named(connection, stream.stream_id, names))


# The files wholly below a cut.
_BELOW = """segment s, front(:s, CAST(:cut AS jsonb)) n
    WHERE f.stream_id = :s AND s.stream_id = :s AND s.segment_id = f.segment_id
      AND f.segment_id <= (SELECT max(segment_id) FROM cut_entries(CAST(:cut AS jsonb)))
      AND has_passed(n.keys, n.owners, n.offsets, s.key_low, f.segment_id,
                     f.start_offset + f.events)"""


def files_below(connection: Connection, stream: LockedStream, cut: StreamCut) -> int:
    """Return how many files a move of the head to a cut would free."""
    count: int = connection.execute(
        text(f"SELECT count(*) FROM data_file f, {_BELOW}"),  # noqa: S608 - a constant
        {"s": stream.stream_id, "cut": json.dumps(cut.to_json())},
    ).scalar_one()
    return count


def unread_events_lost(
    connection: Connection, stream: LockedStream, cut: StreamCut, *, subscribers: bool = True
) -> dict[str, int]:
    """Return per subscriber how many events between the head and the cut it has not read.

    Events count even if the subscriber has released them by hand without reading them. With
    `subscribers` false, return the same for groups that are not subscribers.
    """
    lost: dict[str, int] = connection.execute(
        text("SELECT unread_events_lost(:s, CAST(:cut AS jsonb), :subscribers)"),
        {
            "s": stream.stream_id,
            "cut": json.dumps(cut.to_json()),
            "subscribers": subscribers,
        },
    ).scalar_one()
    return lost


def warn_of_lost(stream: LockedStream, lost: dict[str, int], reason: str) -> None:
    """Log which subscriber loses how many events."""
    for name, events in lost.items():
        log.warning("subscriber %s loses %s unread events of stream %s (%s)", name, f"{events:,}",
                    stream.name, reason)  # fmt: skip


def move_head(connection: Connection, stream: LockedStream, cut: StreamCut) -> Freed:
    """Move the head of a locked stream to a checked cut, and return what was freed."""
    row = connection.execute(
        text(
            f"""WITH below AS (
                DELETE FROM data_file f USING {_BELOW}
                RETURNING f.path, f.bytes
            ), dead AS (
                INSERT INTO garbage (root, path, stream_id, reason, bytes)
                SELECT '', path, :s, 'truncated', bytes FROM below
            ), moved AS (
                UPDATE stream SET head = CAST(:cut AS jsonb) WHERE stream_id = :s
            )
            SELECT n.events - o.events, n.bytes - o.bytes, (SELECT count(*) FROM below)
            FROM size_till(:s, CAST(:cut AS jsonb)) n, size_till(:s, CAST(:head AS jsonb)) o"""  # noqa: S608 - a constant
        ),
        {
            "s": stream.stream_id,
            "cut": json.dumps(cut.to_json()),
            "head": json.dumps(stream.head),
        },
    ).one()
    return Freed(*row)
