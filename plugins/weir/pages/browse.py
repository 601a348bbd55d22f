"""Look through the newest events of a stream, or those before a time, or of a key, with little
memory and within a few seconds: for people who look, not for programs that read."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from weir.arrow.read import concatenated, read_rows
from weir.arrow.tail import last_rows
from weir.controller.locks import StreamRow, read_stream
from weir.controller.read_plan import FileSlice, newest_slices
from weir.controller.streams import schema_by_id
from weir.database.connection import Database
from weir.errors import Conflict
from weir.kernel.matching import Matching, fulfilling, routing_keys, with_routing_keys
from weir.kernel.schema import to_read
from weir.model.key_space import STEPS, routing_steps
from weir.model.names import StreamName, check_key
from weir.model.schema import SEQ, Field
from weir.settings import Settings

MOST_FILES = 200
MOST_SECONDS = 6.0
MOST_BYTES = 64 << 20  # of the events that are shown
# Events, or little more, that are looked through for those of a key or a condition.
LOOKED = 100_000


class Place(NamedTuple):
    """A place in the write order, seen from the tail: before all of a later clock, and before the
    last `passed` events of this clock."""

    clock: int
    passed: int = 0


class Seen(NamedTuple):
    """What was found: the newest event first. `next`: where to look on, if there may be more.
    `looked`: how many events were looked at, `since`: the clock of the oldest of them."""

    table: pa.Table
    fields: list[Field]
    routing_key: str
    next: Place | None
    looked: int
    since: int | None


def browse(
    database: Database, settings: Settings, name: StreamName, count: int, *,
    before: Place | None = None, key: str | None = None, condition: str = "",
    columns: Sequence[str] | None = None, most: int = 1000, sample: bool = False,
) -> Seen:  # fmt: skip
    """Return at most `count` events, the newest first, with `_segment`, `_offset` and `_clock`: of
    the whole stream, of a routing key, or that fulfil a condition on columns, or both. `columns`:
    which; None: the first `most`. `sample`: fewer will do, if all were in too many files, or took
    too long.

    Raises NotFound; InvalidInput for a key that no event has, or a condition that can't be
    computed; and Conflict if this would take too many files, too long or too much memory."""
    begun = time.monotonic()
    if key is not None:
        check_key(key)
    passed = before.passed if before else 0
    need = count + passed + 1
    every = key is None and not condition
    asked = need if every else LOOKED

    def plan(c: Connection) -> tuple[StreamRow, list[FileSlice], list[Field]]:
        row = read_stream(c, name)
        slices = newest_slices(c, row.stream_id, asked, before.clock + 1 if before else None)
        return row, slices, schema_by_id(c, row.stream_id)

    row, slices, fields = database.snapshot(plan)
    schema = to_read(fields)
    wanted = list(schema.names[:most]) if columns is None else list(columns)
    matches = list[Matching]()
    if condition:
        matches.append(fulfilling(condition, schema))
    if key is not None and slices:
        computed = routing_keys(name, row.configuration.routing_key, schema)
        matches.append(with_routing_keys(computed, [key]))
    exhausted = sum(s.rows for s in slices) < asked
    since = min((s.first_clock for s in slices), default=None)
    if key is not None:
        at = routing_steps(key.encode()) / STEPS
        slices = [s for s in slices if s.key_low <= at < s.key_high]

    at_once = [] if matches else wanted  # what matches may be among many that were passed
    found: list[pa.Table] = []
    order: list[tuple[int, int]] = []
    looked = stopped = 0
    for files, part in enumerate(slices):
        order.sort(reverse=True)
        if len(order) >= need and order[need - 1] > (part.first_clock, part.last_seq):
            since = part.first_clock
            break  # this file, and all after it in this order, end before the events found
        if files >= MOST_FILES or time.monotonic() - begun > MOST_SECONDS:
            if (every and not sample) or part.first_clock == slices[0].first_clock:
                raise _too_much(name)
            stopped = since = part.first_clock
            break
        looked += part.rows
        rows = _last(settings, part, schema, matches, need, at_once)
        found.append(rows)
        order += [(part.first_clock, seq) for seq in rows[SEQ].to_pylist()]
        if sum(one.nbytes for one in found) > MOST_BYTES:
            raise _too_much(name)

    keys = [("_clock", "descending"), (SEQ, "descending")]
    whole = concatenated(found, schema, at_once).sort_by(keys)
    whole = whole.filter(pc.greater(whole["_clock"], stopped))
    shown = whole.slice(passed, count)
    if matches:
        shown = _whole(settings, name, slices, shown, schema, wanted)
    shown = shown.drop_columns([SEQ])
    more: Place | None = None
    if whole.num_rows > passed + count:
        more = _after(shown["_clock"].to_pylist(), before)
    elif stopped:
        more = Place(stopped)
    elif not exhausted and since is not None:
        more = Place(since - 1)
    return Seen(shown, fields, row.configuration.routing_key, more, looked, since)


def _last(
    settings: Settings, part: FileSlice, schema: pa.Schema, matches: Sequence[Matching], need: int,
    wanted: Sequence[str],
) -> pa.Table:  # fmt: skip
    """Return the last rows of a file, or the last that match, of which so many are read as it
    takes: each time four times as many as before."""
    if not matches:
        return read_rows(settings, last_rows(part, need), schema, wanted, piecewise=True)
    columns = list(dict.fromkeys(name for one in matches for name in one.columns))
    found = list[pa.Table]()
    end, most = part.end_row, LOOKED
    while end > part.first_row and sum(one.num_rows for one in found) < need:
        piece = part._replace(first_row=max(end - most, part.first_row), end_row=end)
        rows = read_rows(settings, piece, schema, columns, piecewise=True)
        for one in matches:
            rows = rows.filter(one.rows(rows))
        found.insert(0, rows.drop_columns(columns))
        end, most = piece.first_row, most * 4
    whole = pa.concat_tables(found)
    return whole.slice(max(whole.num_rows - need, 0))


def _whole(
    settings: Settings, name: StreamName, slices: Sequence[FileSlice], rows: pa.Table,
    schema: pa.Schema, wanted: Sequence[str],
) -> pa.Table:  # fmt: skip
    """Return rows of which only the places are known, with their columns."""
    found: list[pa.Table] = []
    for segment, offset in zip(
        rows["_segment"].to_pylist(), rows["_offset"].to_pylist(), strict=True
    ):
        [(part, at)] = [
            (one, offset - one.start_offset) for one in slices
            if one.segment_id == segment
            and one.first_row <= offset - one.start_offset < one.end_row
        ]  # fmt: skip
        piece = part._replace(first_row=at, end_row=at + 1)
        found.append(read_rows(settings, piece, schema, wanted, piecewise=True))
        if sum(one.nbytes for one in found) > MOST_BYTES:
            raise _too_much(name)
    return concatenated(found, schema, wanted)


def _after(clocks: list[int], before: Place | None) -> Place:
    """Return the place after events with these clocks, which come from a place on."""
    last = clocks[-1]
    passed = sum(clock == last for clock in clocks)
    if before and before.clock == last:
        passed += before.passed
    return Place(last, passed)


def _too_much(name: StreamName) -> Conflict:
    return Conflict(
        "events_too_large",
        f"the events of stream {name} that are asked for are in too many or too large files to "
        "show them here; look at a later or an earlier time, or read them with a program.",
    )
