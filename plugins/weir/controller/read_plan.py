"""Plan reads: which files hold which events. One statement for any number of files."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, TextClause, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import StreamRow, read_stream
from weir.controller.missing import Missing, missing_after, missing_between, truncated_after
from weir.controller.queries import Cut, segments_between, stream_cut_at
from weir.controller.streams import schema_by_id
from weir.errors import Truncated
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.model.stream_cut import first_behind


class FileSlice(NamedTuple):
    """A file, and what of it to read: the offsets from `start_offset + first_row` up to
    `start_offset + end_row`, exclusive. Each has a row, but for `holes` of them, whose events were
    erased; `sparse`: the file has such, and the offset of each row (semantics 20).

    `first_seq`, `last_seq`: no rank in the file is smaller or larger. `first_clock`, `last_clock`:
    the clocks of the first and the last row to read. If they differ, the file has the clock of each
    row (`compacted`: a file of several commits; semantics 12.5).
    """

    path: str  # below the warehouse
    segment_id: int
    key_low: float
    key_high: float
    start_offset: int
    events: int
    first_seq: int
    last_seq: int
    first_clock: int
    last_clock: int
    compacted: bool
    first_row: int
    end_row: int
    holes: int = 0
    sparse: bool = False

    @property
    def rows(self) -> int:
        """How many events are to be read."""
        return self.end_row - self.first_row - self.holes

    @property
    def whole(self) -> bool:
        """Whether all rows of the file are to be read."""
        return self.first_row == 0 and self.end_row == self.events


class Slices(NamedTuple):
    """What is to be read of a stream."""

    name: str
    stream_id: int
    slices: Sequence[FileSlice]
    fields: list[Field]


_COLUMNS = """f.path, f.segment_id, s.key_low, s.key_high, f.start_offset, f.events, f.first_seq,
    f.last_seq"""
# How many offsets from `a` up to `b` of a file `f` have no event.
_HOLES = """CASE WHEN f.erased = 0 THEN 0 ELSE holes_in(f.stream_id, f.segment_id,
    f.start_offset + {a}, f.start_offset + {b}) END, f.erased > 0"""
# Per file: by Postgres' estimates, a plan that reads all transactions of the stream is as cheap.
_KEYS = """CROSS JOIN LATERAL (
        SELECT o.key_low, o.key_high FROM segment o
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id OFFSET 0) s"""
# The clocks of the rows `r` of a file `f`; of a part of a file of several commits, those of the
# commits that the part begins and ends with.
_CLOCKS = """CROSS JOIN LATERAL (
        SELECT o.clock AS first, o.clock AS last, false AS compacted FROM transaction o
        WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
        UNION ALL
        SELECT CASE WHEN r.first = 0 THEN f.first_clock ELSE
                   (SELECT i.clock
                    FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END,
               CASE WHEN r.past = f.events THEN f.last_clock ELSE
                   (SELECT i.clock
                    FROM commit_at(f.stream_id, f.segment_id, f.start_offset + r.past - 1) i) END,
               true
        WHERE f.transaction_number IS NULL OFFSET 0) t"""
# The rows of a file `f` by commit.
_COMMITS = """CROSS JOIN LATERAL (
        SELECT o.clock AS first, o.clock AS last, false AS compacted, r.first AS begins,
               r.past AS ends
        FROM transaction o
        WHERE o.stream_id = f.stream_id AND o.transaction_number = f.transaction_number
        UNION ALL
        SELECT i.clock, i.clock, true, greatest(r.first, i.start_offset - f.start_offset),
               least(r.past, i.start_offset + i.events - f.start_offset)
        FROM commits_in(f.stream_id, f.segment_id, f.start_offset + r.first,
                        f.start_offset + r.past) i
        WHERE f.transaction_number IS NULL OFFSET 0) t"""

_FILES_OF_BOUNDS = f"""jsonb_to_recordset(CAST(:bounds AS jsonb))
        AS b (segment bigint, first bigint, past bigint)
    CROSS JOIN LATERAL (
        SELECT * FROM data_file d WHERE d.stream_id = :s AND d.segment_id = b.segment
          AND d.start_offset < b.past AND d.start_offset >= coalesce((
              SELECT max(n.start_offset) FROM data_file n WHERE n.stream_id = :s
              AND n.segment_id = b.segment AND n.start_offset <= b.first), 0) OFFSET 0) f
    CROSS JOIN LATERAL (
        SELECT greatest(b.first - f.start_offset, 0) AS first,
               least(b.past - f.start_offset, f.events) AS past OFFSET 0) r
    {_KEYS}"""  # noqa: S608 - constants
OF_BOUNDS = f"""SELECT {_COLUMNS}, t.first, t.last, t.compacted, r.first, r.past,
    {_HOLES.format(a="r.first", b="r.past")}
    FROM {_FILES_OF_BOUNDS} {_CLOCKS}
    ORDER BY f.segment_id, f.start_offset"""  # noqa: S608 - constants


_OF_BOUNDS = text(OF_BOUNDS)
_BY_COMMIT = text(
    f"""SELECT {_COLUMNS}, t.first, t.last, t.compacted, t.begins, t.ends,
    {_HOLES.format(a="t.begins", b="t.ends")}
    FROM {_FILES_OF_BOUNDS} {_COMMITS}
    ORDER BY f.segment_id, f.start_offset, t.begins"""  # noqa: S608 - constants
)


def slices_of_stream(connection: Connection, stream_id: int) -> list[FileSlice]:
    """Return the slices of a whole stream, from the head to the tail."""
    rows = connection.execute(
        text(
            f"""SELECT {_COLUMNS}, coalesce(t.clock, CASE WHEN r.first = 0 THEN f.first_clock
                    ELSE (SELECT i.clock FROM
                        commit_at(f.stream_id, f.segment_id, f.start_offset + r.first) i) END),
                coalesce(t.clock, f.last_clock), t.clock IS NULL, r.first, f.events,
                {_HOLES.format(a="r.first", b="f.events")}
            FROM data_file f
            JOIN segment s USING (stream_id, segment_id)
            LEFT JOIN transaction t USING (stream_id, transaction_number)
            LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :s) h
                ON h.segment_id = f.segment_id
            CROSS JOIN LATERAL (SELECT
                greatest(coalesce(h.event_offset, 0) - f.start_offset, 0) AS first) r
            WHERE f.stream_id = :s ORDER BY f.segment_id, f.start_offset"""  # noqa: S608 - constants
        ),
        {"s": stream_id},
    )
    return [FileSlice(*row) for row in rows]


def slices_of_bounds(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> list[FileSlice]:
    """Return the slices of the events within bounds: (segment id, from, to), `to` exclusive."""
    return _slices(connection, _OF_BOUNDS, stream_id, bounds)


def slices_by_commit(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> list[FileSlice]:
    """Return the slices of the events within bounds like `slices_of_bounds`, each of one commit."""
    return _slices(connection, _BY_COMMIT, stream_id, bounds)


def _slices(
    connection: Connection,
    statement: TextClause,
    stream_id: int,
    bounds: Sequence[tuple[int, int, int]],
) -> list[FileSlice]:
    listed = [{"segment": s, "first": a, "past": b} for s, a, b in bounds]
    rows = connection.execute(statement, {"s": stream_id, "bounds": json.dumps(listed)})
    return [FileSlice(*row) for row in rows]


def newest_slices(
    connection: Connection, stream_id: int, events: int, before: int | None = None
) -> list[FileSlice]:
    """Return slices of the newest files, each of one commit and the last one written first, that
    hold the last `events` events in write order, and others. `before`: of commits before this
    clock; None: of all.

    Looks at the newest commit first, and at eight times as many before it while these do not
    suffice.
    """
    found: list[FileSlice] = []
    commits = 1
    while True:
        rows = connection.execute(
            _NEWEST, {"s": stream_id, "before": before, "commits": commits, "most": events}
        ).all()
        found += [FileSlice(*row[:-1]) for row in rows if row.path is not None]
        if not rows or sum(one.rows for one in found) >= events:
            return found
        before, commits = rows[0].oldest, commits * 8


# Each slice has an event that can be read, so so many slices, with all of the last one's commit,
# hold so many of the last events. A row without a file says that commits were looked at.
_NEWEST = text(
    f"""WITH seen AS (
        SELECT min(n.clock) AS oldest
        FROM newest_commits(:s, coalesce(CAST(:before AS bigint), 9223372036854775807), :commits) n
    ), newest AS MATERIALIZED (
        SELECT d.*, i.clock, p.begins, p.ends FROM seen
        CROSS JOIN LATERAL commits_between(:s, seen.oldest,
            coalesce(CAST(:before AS bigint) - 1, 9223372036854775807)) i
        LEFT JOIN (SELECT e.* FROM stream, cut_entries(head) e WHERE stream_id = :s) h
            ON h.segment_id = i.segment_id
        CROSS JOIN LATERAL (  -- from the file on that holds the first event
            SELECT * FROM data_file o
            WHERE o.stream_id = :s AND o.segment_id = i.segment_id
              AND o.start_offset < i.start_offset + i.events AND o.start_offset >= coalesce((
                  SELECT max(n.start_offset) FROM data_file n
                  WHERE n.stream_id = :s AND n.segment_id = i.segment_id
                    AND n.start_offset <= i.start_offset), 0) OFFSET 0) d
        CROSS JOIN LATERAL (
            SELECT greatest(i.start_offset, h.event_offset, d.start_offset) - d.start_offset
                       AS begins,
                   least(i.start_offset + i.events - d.start_offset, d.events) AS ends) p
        WHERE p.begins < p.ends AND (d.erased = 0 OR p.ends - p.begins > holes_in(
            d.stream_id, d.segment_id, d.start_offset + p.begins, d.start_offset + p.ends))
        ORDER BY i.clock DESC FETCH FIRST :most ROWS WITH TIES
    )
    SELECT n.*, seen.oldest FROM seen LEFT JOIN LATERAL (
        SELECT {_COLUMNS}, f.clock AS first_clock, f.clock AS last_clock,
            f.transaction_number IS NULL, f.begins, f.ends,
            {_HOLES.format(a="f.begins", b="f.ends")}
        FROM newest f {_KEYS}
    ) n ON true
    WHERE seen.oldest IS NOT NULL
    ORDER BY n.first_clock DESC, n.last_seq DESC"""  # noqa: S608 - constants
)


def plan_of_bounds(
    connection: Connection, stream_id: int, bounds: Sequence[tuple[int, int, int]]
) -> tuple[list[FileSlice], list[dict[str, Any]]]:
    """Return the slices within bounds, and the schema with which to read them."""
    return slices_of_bounds(connection, stream_id, bounds), schema_by_id(connection, stream_id)


def plan_of_stream(
    connection: Connection, name: StreamName
) -> tuple[int, list[FileSlice], list[dict[str, Any]]]:
    """Return a stream's id, its slices from head to tail, and its schema. Raises NotFound."""
    stream_id = read_stream(connection, name).stream_id
    return stream_id, slices_of_stream(connection, stream_id), schema_by_id(connection, stream_id)


def plan(
    connection: Connection,
    name: StreamName,
    start: Cut | datetime | None,
    end: Cut | datetime | None,
    on_gap: str = "fail",
) -> tuple[list[FileSlice], list[Field]]:
    """Return the slices to read from one point to another, by segment and offset, and the schema.

    `start`: None for the head; `end`: None for the tail; a time stands for the cut that was the
    tail then, or the head if that is later (close it first: `weir.controller.times`). Call it in a
    snapshot, or it may miss what is truncated between two of its statements. Raises Truncated if
    events after the cut `start` were truncated, unless `on_gap` is "skip".
    """
    stream = read_stream(connection, name)
    start, end = (
        stream_cut_at(connection, name, point) if isinstance(point, datetime) else point
        for point in (start, end)
    )
    asked = 0
    if start is not None:
        asked = _asked(connection, stream, start, end, on_gap)
    # A file may straddle the head. Its rows below the head are truncated like those of other files.
    first, last = readable(connection, stream.stream_id, start, end)
    if start is None and last is not None:
        _check_end(connection, stream, last)
    rows = segments_between(connection, name, first, last)
    bounds = [(r.segment_id, r.from_offset, r.to_offset) for r in rows]
    slices, fields = plan_of_bounds(connection, stream.stream_id, bounds)
    lost = asked - sum(s.end_row - s.first_row for s in slices)
    if start is not None and lost > 0:
        missing = missing_after(connection, stream.stream_id, start, end)
        unknown = Missing(str(name), lost, None, None)
        raise truncated_after(missing or unknown, start, stream.head)
    return slices, fields


def _check_end(connection: Connection, stream: StreamRow, end: Cut) -> None:
    """Check that an end is not before the head. Raises Truncated with what was truncated."""
    head, cut = load_cuts(connection, stream.stream_id, stream.head, end)
    if first_behind(head, cut) is not None:
        lacks = missing_between(connection, stream.name, None, None, empty=True)
        gone = str(lacks) if lacks else f"the events of stream {stream.name} were truncated"
        raise Truncated(
            "events_truncated",
            f"the end {json.dumps(end)} lies before the head, {json.dumps(stream.head)}: {gone}; "
            "give a later end.",
        )


def _asked(
    connection: Connection, stream: StreamRow, start: Cut, end: Cut | None, on_gap: str
) -> int:
    """Return how many events between two cuts must be there: none that `on_gap` may skip.

    Raises InvalidInput for a cut that is not one, and Truncated where metadata was pruned.
    """
    try:
        load_cuts(connection, stream.stream_id, start, *([] if end is None else [end]))
        between = segments_between(connection, stream.name, start, end)
    except Truncated:
        if on_gap == "fail":
            raise
        return 0
    if on_gap == "skip":
        return 0
    return sum(row.to_offset - row.from_offset for row in between)


def readable(
    connection: Connection, stream_id: int, start: Cut | None, end: Cut | None
) -> tuple[Cut | None, Cut | None]:
    """Return what is left to read between two cuts: each cut, or the head where that is later."""
    if start is None:
        return start, end
    row = connection.execute(
        text(
            """SELECT r.cut, join_cuts(:s, CAST(:end AS jsonb), r.cut) AS end_cut
            FROM stream CROSS JOIN LATERAL
                (SELECT readable_cut(:s, CAST(:start AS jsonb), head) AS cut OFFSET 0) r
            WHERE stream_id = :s"""
        ),
        {
            "s": stream_id,
            "start": json.dumps(start),
            "end": None if end is None else json.dumps(end),
        },
    ).one()
    return row.cut, row.end_cut
