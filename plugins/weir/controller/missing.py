"""What an answer lacks because it was truncated: how many events, when and why (semantics 10)."""

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts, segments_named
from weir.controller.queries import Cut
from weir.errors import Truncated, TruncatedWarning
from weir.model.names import StreamName
from weir.model.segment import Segment, parse_segment_name, segment_name
from weir.model.stream_cut import StreamCut, join
from weir.queries.controller import missing as sql


class Missing(NamedTuple):
    """Events of a stream that were truncated; when and why the last of them was, if that is
    recorded."""

    stream: str
    events: int
    truncated_at: datetime | None
    reason: str | None

    def __str__(self) -> str:
        """Return it as the beginning of a sentence."""
        return self.said()

    def said(self, where: str = "") -> str:
        """Return it as the beginning of a sentence, with words for the place."""
        when = ", longer ago than is recorded"
        if self.truncated_at is not None:
            last = "" if self.events == 1 else "the last of them "
            at = self.truncated_at.astimezone(UTC)
            when = f", {last}at {at:%Y-%m-%d %H:%M:%S} UTC ({self.reason})"
        one, were = ("event", "was") if self.events == 1 else ("events", "were")
        return f"{self.events:,} {one} of stream {self.stream}{where} {were} truncated{when}"

    def warn(self) -> None:
        """Warn the program that called Weir, at the line where it did."""
        level, frame = 2, sys._getframe(1)
        while frame.f_back and frame.f_globals.get("__name__", "").startswith("weir."):
            level, frame = level + 1, frame.f_back
        warnings.warn(TruncatedWarning(f"{self}; the answer lacks them."), stacklevel=level)


def missing_between(
    connection: Connection,
    stream: StreamName,
    since: datetime | None,
    until: datetime | None,
    *,
    empty: bool,
) -> Missing | None:
    """Return what was truncated of an answer that takes what was committed after a time and up to
    another; None if nothing was.

    An answer without `since` begins at the head, and lacks nothing unless it is `empty`. Call it in
    the snapshot of the answer, with closed times.
    """
    if since is None and not empty:
        return None
    row = sql.between(connection, stream=str(stream), since=since, until=until)
    return Missing(str(stream), *row) if row.events else None


def missing_within(
    connection: Connection,
    stream_id: int,
    start: StreamCut | datetime | None,
    end: StreamCut | datetime | None,
) -> Missing | None:
    """Return what was truncated between two points of a stream, each a cut or a time; None if
    nothing was. `start`: None for the beginning; `end`: None for the tail, else at or after the
    start."""
    start_at, start_cut = _point(start)
    end_at, end_cut = _point(end)
    row = sql.within(
        connection, stream_id=stream_id, start=start_at, start_cut=start_cut, end=end_at,
        end_cut=end_cut,
    )  # fmt: skip
    return Missing(*row) if row and row.events else None


def _point(point: StreamCut | datetime | None) -> tuple[datetime | None, str | None]:
    if isinstance(point, StreamCut):
        return None, json.dumps(point.to_json())
    return point, None


def missing_after(
    connection: Connection, stream_id: int, start: Cut, end: Cut | datetime | None
) -> Missing | None:
    """Return what was truncated between a cut and an end as `missing_within`, also of a cut that
    is not before the end.

    Raises InvalidInput for a cut that is none, and Truncated for one whose metadata was pruned.
    """
    (first,) = load_cuts(connection, stream_id, start)
    if end is None or isinstance(end, datetime):
        return missing_within(connection, stream_id, first, end)
    (last,) = load_cuts(connection, stream_id, end)
    return missing_within(connection, stream_id, first, join(first, last))


def missing_of_bounds(
    connection: Connection,
    stream: str,
    stream_id: int,
    bounds: Sequence[tuple[int, int, int]],
    events: int,
) -> Missing:
    """Return that so many events between bounds (segment id, from, to) were truncated, with the
    truncation that took the last of them."""
    rows = sql.truncations(connection, stream=stream)
    named = {segment_name(segment_id) for segment_id, _, _ in bounds}
    segments = segments_named(connection, stream_id, named.union(*(row.head for row in rows)))
    found = Missing(stream, events, None, None)
    for row in rows:
        if not {parse_segment_name(name) for name in row.head} <= segments.keys():
            break  # the metadata of truncated segments was pruned
        head = StreamCut.from_json(row.head, segments)
        if _passed(head, segments, bounds) < events:
            break
        found = Missing(stream, events, row.truncated_at, row.reason)
    return found


def _passed(
    head: StreamCut, segments: Mapping[int, Segment], bounds: Sequence[tuple[int, int, int]]
) -> int:
    """Return how many events between the bounds lie before a head."""
    passed = 0
    for segment_id, start, end in bounds:
        segment = segments.get(segment_id)
        kept = head.offsets.get(segment) if segment else None
        if isinstance(kept, int):
            passed += max(0, min(kept, end) - start)
        elif segment is None or not head.contains(segment):
            passed += end - start
    return passed


def truncated_after(missing: Missing, start: Cut, head: Cut) -> Truncated:
    """Return the error that events after a cut were truncated."""
    return Truncated(
        "events_truncated",
        f"{missing.said(f' after the cut {json.dumps(start)}')}; start at the head, "
        f"{json.dumps(head)}, or later.",
    )


def truncated(missing: Missing, what_to_do: str) -> Truncated:
    """Return the error that a position lies before the head."""
    return Truncated(
        "events_truncated", f"this place lies before the head: {missing}; {what_to_do}."
    )
