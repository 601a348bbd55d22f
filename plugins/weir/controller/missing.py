"""What an answer lacks because it was truncated: how many events, when and why (semantics 10)."""

import json
import sys
import warnings
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts, segments_named
from weir.controller.queries import Cut
from weir.errors import Truncated, TruncatedWarning
from weir.model.names import StreamName
from weir.model.segment import Segment, parse_segment_name, segment_name
from weir.model.stream_cut import StreamCut, join

_LOOKED_AT = 1000  # the most truncations among which that of a batch is looked for
_AFTER = """CASE WHEN CAST(:{0}_cut AS jsonb) IS NOT NULL
    THEN truncated_from(stream_id, CAST(:{0}_cut AS jsonb))
    WHEN CAST(:{0} AS timestamptz) IS NOT NULL
    THEN truncated_after(stream_id, time_clock(CAST(:{0} AS timestamptz))) {1} END"""
_WITHIN = text(
    f"""SELECT stream_name, p.events, p.truncated_at, p.reason FROM stream
    CROSS JOIN LATERAL size_till(stream_id, head) z
    CROSS JOIN LATERAL truncated_part(
        stream_id, {_AFTER.format("start", "")}, {_AFTER.format("end", "ELSE 0")}) p
    WHERE stream_id = :s AND z.events > 0"""  # noqa: S608 - constants
)


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
    row = connection.execute(
        text(
            """SELECT events, truncated_at, reason FROM truncated_between(
                :stream, CAST(:since AS timestamptz), CAST(:until AS timestamptz))"""
        ),
        {"stream": str(stream), "since": since, "until": until},
    ).one()
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
    given: dict[str, object] = {"s": stream_id}
    for name, point in (("start", start), ("end", end)):
        cut = point if isinstance(point, StreamCut) else None
        given |= {
            name: None if cut else point,
            f"{name}_cut": json.dumps(cut.to_json()) if cut else None,
        }
    row = connection.execute(_WITHIN, given).one_or_none()
    return Missing(*row) if row and row.events else None


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
    rows = connection.execute(
        text(
            """SELECT head, truncated_at, reason FROM weir.truncations
            WHERE stream = :stream ORDER BY truncated_at DESC LIMIT :most"""
        ),
        {"stream": stream, "most": _LOOKED_AT},
    ).all()
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
