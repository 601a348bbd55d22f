"""What a group is to read, of which a part may be truncated: refused, or left out and said."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedStream
from weir.controller.missing import Missing, missing_within
from weir.controller.queries import stream_cut_at
from weir.errors import Truncated
from weir.front_ends import give
from weir.model.stream_cut import StreamCut, first_behind, join
from weir.reader_groups.starting_points import Cuts, find_cuts, times_of


class Span(NamedTuple):
    """Where a group begins and ends, by stream id, and lines that say what was truncated of what it
    was to read, or before the head at which it begins."""

    starts: Cuts
    ends: Cuts
    missing: list[str]


def find_span(
    connection: Connection,
    streams: Sequence[LockedStream],
    start: str,
    end: str = "",
    *,
    allow_truncated: bool,
) -> Span:
    """Return the span between two starting points (`weir.reader_groups.starting_points`); no end
    is empty. Raises what `find_cuts` and `without_truncated` raise."""
    starts = find_cuts(connection, streams, start)
    ends = find_cuts(connection, streams, end, as_end=True) if end.strip() else {}
    return without_truncated(
        connection, streams, starts, ends, start, end, allow_truncated=allow_truncated
    )


def without_truncated(
    connection: Connection,
    streams: Sequence[LockedStream],
    starts: Cuts,
    ends: Cuts,
    start: str = "",
    end: str = "",
    *,
    allow_truncated: bool,
) -> Span:
    """Return what is left between cuts, which the starting points `start` and `end` stand for: with
    `allow_truncated`, what lies before the head begins at the head, or ends there.

    A start at the head says what was truncated before it. Raises Truncated with the count if
    something between the cuts was truncated, unless `allow_truncated`.
    """
    word = start.strip()
    since, until = (
        times_of(connection, streams, start),
        times_of(connection, streams, end, as_end=True),
    )
    span, empty = Span(dict(starts), dict(ends), []), []
    for stream in streams:
        here = stream.stream_id
        if _is_whole(stream):
            continue
        (head,) = load_cuts(connection, here, stream.head)
        begins, stops = starts[here], ends.get(here)
        behind = stops is not None and _is_before(connection, stream, head, until.get(here, stops))
        first: StreamCut | datetime | None = None
        if here in since:
            first = since[here]
        elif first_behind(head, begins) is not None:
            first, stops = begins, None if stops is None else join(begins, stops)
        elif begins.to_json() != stream.head or word == "tail" or not (behind or word == "head"):
            continue
        missing = missing_within(connection, here, first, until.get(here, stops))
        if missing is None:
            continue
        if not allow_truncated and first is not None:
            raise _refused(missing, behind=behind, ends=here in ends)
        empty += [missing] if behind else []
        span.starts[here] = join(begins, head)
        left = f"reading begins at the head, {head.to_text()}"
        if here in ends:
            span.ends[here] = join(span.starts[here], ends[here])
            # An end may lie before the head in some segments, and after it in others.
            if span.ends[here] == span.starts[here]:
                left = "nothing is left before the end"
        span.missing.append(f"{missing}; {left}")
    # From the head on, a stream of several may have nothing to give.
    if not allow_truncated and empty and len(empty) == len(streams):
        raise _refused(empty[0], behind=True, ends=True)
    return span


def _refused(missing: Missing, *, behind: bool, ends: bool) -> Truncated:
    """Return the error that something of a span is missing; of one that `ends`, perhaps `behind`
    the head."""
    where = "between the start and the end that are" if ends else "after the start that is"
    later = "give a later end" if behind else "choose the head, or a later starting point"
    return Truncated(
        "events_truncated",
        f"{missing}; they lie {where} asked for, so {later}, or to read what is left, "
        f"{give(allow_truncated=True)}.",
    )


def _is_whole(stream: LockedStream) -> bool:
    """Return whether nothing of a stream was ever truncated: it begins where it was created."""
    return all(name.endswith(".0") and offset == 0 for name, offset in stream.head.items())


def _is_before(
    connection: Connection, stream: LockedStream, head: StreamCut, end: StreamCut | datetime
) -> bool:
    """Return whether an end lies before the head in a segment, or at the head for a time."""
    if isinstance(end, datetime):
        return stream_cut_at(connection, stream.name, end) == stream.head
    return first_behind(head, end) is not None
