"""The commands that look and change nothing. None of them starts a JVM."""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, text

from weir.arrow.event_time import event_span
from weir.arrow.read import check_columns, read_rows, read_slice
from weir.arrow.tail import tail_of
from weir.controller.locks import read_stream
from weir.controller.missing import Missing, missing_between
from weir.controller.read_plan import FileSlice, plan
from weir.controller.times import close_span, parse_span
from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound
from weir.history.lineage import lineage_of
from weir.kernel.matching import Matching, fulfilling
from weir.kernel.schema import to_arrow, to_read
from weir.kernel.values import rows_of
from weir.model.clock import clock_time
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.model.segment import segment_name
from weir.pages.metrics import as_text
from weir.pages.metrics import rows_of as rows_of_metrics
from weir.settings import Settings
from weir.terminal.printing import as_json, events, note, print_json, print_lines, table

SHOWN = 100  # rows that `read` shows to people unless they ask for more
LARGEST = 20  # rows that `disk` shows to people unless they ask for more
_BATCH = 10_000
_DEEPEST = 2**31 - 1
_DIGITS = 18  # of the largest numbers that Postgres counts with


@dataclass(frozen=True)
class Terminal:
    """What a command works with."""

    settings: Settings
    database: Database
    json: bool

    def rows(self, statement: str, **given: object) -> list[dict[str, Any]]:
        """Return the rows of a query."""
        found = self.database.snapshot(lambda c: c.execute(text(statement), given).all())
        return [dict(row._mapping) for row in found]

    def show(self, rows: Sequence[Mapping[str, object]], none: str) -> int:
        """Print rows, or the line `none` if there are none, and return the exit status."""
        if self.json:
            print_json(rows)
        elif rows:
            print(table(rows))
        else:
            note(none)
        return 0


def streams(terminal: Terminal, given: argparse.Namespace) -> int:
    """List the streams: how much they hold, and when they last changed."""
    rows = terminal.rows(
        """SELECT stream, state, routing_key, events_retained AS events, bytes_retained AS bytes,
            coalesce(garbage, 0) AS garbage_bytes, events_appended AS appended,
            current_epoch AS epoch, last_clock AS changed
        FROM streams LEFT JOIN (
            SELECT stream, sum(bytes)::bigint AS garbage FROM garbage_files GROUP BY stream
        ) g USING (stream)
        WHERE CAST(:one AS text) IS NULL OR stream = :one ORDER BY stream""",
        one=_checked(terminal, given.stream),
    )
    return terminal.show(rows, "there is no stream yet; `weir create` and `weir ingest` make one")


def metrics(terminal: Terminal, _given: argparse.Namespace) -> int:
    """Print the metrics of the view weir.metrics as Prometheus reads them."""
    rows = rows_of_metrics(terminal.database)
    if terminal.json:
        print_json([{"metric": m, "labels": labels, "value": v} for m, labels, v in rows])
    else:
        print(as_text(rows), end="")
    return 0


def disk(terminal: Terminal, given: argparse.Namespace) -> int:
    """Say what takes how much space in the warehouse and the database, and what frees it: which
    setting, command or event."""
    most = _most(terminal, given.limit, LARGEST)
    rows = terminal.rows("SELECT * FROM disk ORDER BY bytes DESC, kind, stream, name")
    totals: Counter[str] = Counter()
    for row in rows:
        totals[row["kind"]] += row["bytes"]
    sections = {
        "totals": [{"kind": kind, "bytes": held} for kind, held in totals.most_common()],
        "largest": rows[:most] if most else rows,
    }
    if terminal.json:
        print_json(sections)
        return 0
    print(f"{table(sections['totals'])}\n\nWhat holds most\n{table(sections['largest'], 1_000)}")
    if left := rows[len(sections["largest"]) :]:
        held = sum(row["bytes"] for row in left)
        note(f"... and {len(left):,} more with {held:,} bytes; --limit 0 shows all")
    note("Not counted: Parquet outputs (weir.parquet_outputs has their folders), open appends.")
    return 0


def lag(terminal: Terminal, given: argparse.Namespace) -> int:
    """List what each reader group has not read yet. Raises NotFound for a group that does not
    exist."""
    rows = terminal.rows(
        """SELECT reader_group, stream, unread_events, unread_bytes, lost_events,
            behind_since, waiting
        FROM lag WHERE CAST(:one AS text) IS NULL OR reader_group = :one
        ORDER BY waiting DESC, reader_group, stream""",
        one=given.reader_group,
    )
    if given.reader_group and not rows:
        raise NotFound(
            "group_not_found",
            f"there is no reader group {given.reader_group!r}; `weir lag` lists all of them.",
        )
    return terminal.show(rows, "there is no reader group yet; `weir create-reader-group` makes one")


def tail(terminal: Terminal, given: argparse.Namespace) -> int:
    """Show the last events of a stream, in the order in which they were written."""
    found = tail_of(
        terminal.database, terminal.settings, stream_name(given.stream),
        _number(given.number, "-n", least=1), _columns(given.columns),
    )  # fmt: skip
    rows = _rows(found)
    if few := len(rows) < _number(given.number, "-n", least=1):
        name = stream_name(given.stream)
        _say(terminal, lambda c: missing_between(c, name, None, None, empty=few))
    if terminal.json:
        print_lines(rows)
        return 0
    return terminal.show(events(rows), f"stream {given.stream} has no events")


def read(terminal: Terminal, given: argparse.Namespace) -> int:
    """Show the events of a stream from its head on, those of a span of time, or those that fulfil a
    condition."""
    most = _most(terminal, given.limit, SHOWN)
    exact = given.where or given.event_time_since or given.event_time_until
    rows = _matching(terminal, given) if exact else _all(terminal, given)
    shown = islice(rows, most) if most else rows
    if terminal.json:
        print_lines(shown)
        return 0
    listed = list(shown)
    terminal.show(events(listed), f"stream {given.stream} has no such events")
    if most and len(listed) == most and next(rows, None) is not None:
        note(f"... only the first {most:,}; --limit 0 shows all")
    return 0


def why(terminal: Terminal, given: argparse.Namespace) -> int:
    """Say why a stream has its present length and segments: what truncated it last, and by what
    groups lost events; what keeps its files, what the next run of retention would do, and what
    would make a segment split or merge. With a path: why that file is there."""
    stream = _checked(terminal, given.stream)
    if given.path:
        kept = "SELECT file, segment, events, bytes, why FROM why_kept(:stream, :path)"
        return terminal.show(terminal.rows(kept, stream=stream, path=given.path), "")
    sections = {
        "retention": terminal.rows(
            """SELECT decided_at, rule, reason FROM retention_status
            WHERE stream = :stream AND decided_at IS NOT NULL""",
            stream=stream,
        ),
        "truncated": terminal.rows(
            """SELECT truncated_at, events, bytes, rule, reason, lost, request_id FROM (
                SELECT *, row_number() OVER (ORDER BY truncated_at DESC) AS n,
                    row_number() OVER (PARTITION BY lost = '{}' ORDER BY truncated_at DESC) AS loss
                FROM truncations WHERE stream = :stream) t
            WHERE n <= 3 OR lost <> '{}' AND loss = 1 ORDER BY truncated_at DESC""",
            stream=stream,
        ),
        "next": terminal.rows(
            "SELECT rule, reason, events, bytes FROM retention_dry_run(:stream)", stream=stream
        ),
        "kept": terminal.rows(
            """SELECT why, count(*) AS files, sum(events)::bigint AS events,
                sum(bytes)::bigint AS bytes
            FROM why_kept(:stream) GROUP BY why ORDER BY sum(bytes) DESC NULLS LAST, why""",
            stream=stream,
        ),
        "subscribers": terminal.rows(
            """SELECT reader_group, held_events, held_bytes, active_at, times_out_at, loses_after
            FROM subscribers WHERE stream = :stream AND held_events > 0
            ORDER BY held_events DESC, reader_group""",
            stream=stream,
        ),
        "alerts": terminal.rows(
            "SELECT reader_group, alert, at, message FROM retention_alerts WHERE stream = :stream",
            stream=stream,
        ),
        "segments": terminal.rows("SELECT * FROM why_scale(:stream)", stream=stream),
    }
    if terminal.json:
        print_json(sections)
        return 0
    titles = {
        "retention": "What retention decided last", "truncated": "What truncated last",
        "next": "What its next run would do",
        "kept": "Why files are there", "subscribers": "Who holds events", "alerts": "Alerts",
        "segments": "Why segments are not split or merged",
    }  # fmt: skip
    parts = [f"{titles[name]}\n{table(rows, 1_000)}" for name, rows in sections.items() if rows]
    print("\n\n".join(parts))
    return 0


def lineage(terminal: Terminal, given: argparse.Namespace) -> int:
    """Say which runs made the events of a stream, or what a run (DAG/run/task) committed: from
    which events, files and store versions, with which version of which function. With --down: what
    was made of it."""
    first, past = (
        None if one is None else _number(one, option, least=0)
        for one, option in ((given.first, "--from"), (given.past, "--to"))
    )
    depth = None if given.depth is None else min(_number(given.depth, "--depth", least=1), _DEEPEST)
    steps = terminal.database.snapshot(
        lambda c: lineage_of(
            c, given.of, "down" if given.down else "up", depth, given.segment, first, past
        )
    )
    most = _most(terminal, given.limit, SHOWN)
    rows = [one._asdict() for one in steps]
    shown = rows[:most] if most else rows
    terminal.show(shown, f"nothing is known of {given.of}")
    if not terminal.json and len(shown) < len(rows):
        kinds = Counter(f"{one['side']} {one['kind']}" for one in rows)
        summed = ", ".join(f"{count:,} {kind}" for kind, count in sorted(kinds.items()))
        note(f"... only {most:,} of {len(rows):,} ({summed}); --limit 0 shows all")
    return 0


def outputs(terminal: Terminal, given: argparse.Namespace) -> int:
    """Compare what two runs of a reader group, or of two groups, have made of the same events, row
    by row: those of a batch, or of the newest that was read twice, with the run before. With --key,
    rows of one key that differ have changed; else those of one event, where both outputs keep its
    place."""
    from weir.pages.kept_outputs import Limits, Wanted
    from weir.pages.outputs import compared

    batch, other = (
        None if one is None else _number(one, option, least=1)
        for one, option in ((given.batch, "--batch"), (given.other_batch, "--other-batch"))
    )
    wanted = Wanted(given.reader_group, batch, given.output, given.other, other, given.other_output)
    most, limits = _number(given.limit, "--limit", least=1), Limits(10_000, 10**8, 1 << 40, 3600.0)
    found = compared(terminal.database, terminal.settings, wanted, given.key, most, limits)
    if terminal.json:
        print_json(found.model_dump(mode="json"))
        return 0
    if found.lacks:
        note(found.lacks)
        return 0
    sides = {"old": found.old, "new": found.new}
    print(table([{"": side, **(dict(run) if run else {})} for side, run in sides.items()]))
    counted = {name: getattr(found, name) for name in ("same", "changed", "only_old", "only_new")}
    print("\n".join(["", table([counted]), *found.said]))
    names, rows = [one.name for one in found.columns], list[dict[str, object]]()
    for row in found.rows:
        changed = ", ".join(names[i] for i in row.changed)
        told = ("was", f"is ({changed})") if changed else ("only old", "only new")
        for what, values in zip(told, (row.old, row.new), strict=True):
            rows += [{"": what, **dict(zip(names, values, strict=True))}] if values else []
    print("\n" + table(rows) if rows else "No row differs.")
    return 0


def _plan(
    terminal: Terminal, given: argparse.Namespace
) -> tuple[list[FileSlice], list[Field], Matching | None]:
    """Return the slices to read, of the whole stream or between two times, the schema, and what
    says which rows have the event times that are asked for."""
    events = event_span(given.event_time_since, given.event_time_until)
    name, span = stream_name(given.stream), parse_span(given.since, given.until)
    close_span(terminal.database, [name], span)

    def found(
        connection: Connection,
    ) -> tuple[list[FileSlice], list[Field], Missing | None, Matching | None]:
        row = read_stream(connection, name)
        within = events.commits(connection, row, span) if events else span
        slices, fields = plan(connection, name, *within)
        match = events.matching(row, fields) if events else None
        slices = events.files(connection, row.stream_id, slices) if events else slices
        lacks = missing_between(connection, name, *within, empty=not slices)
        return slices, fields, lacks, match

    slices, fields, lacks, match = terminal.database.snapshot(found)
    _say(terminal, lambda _: lacks)
    return slices, fields, match


def _say(terminal: Terminal, question: Callable[[Connection], Missing | None]) -> None:
    """Say beside the answer what it lacks: on the standard error output, as JSON if the answer
    is."""
    if (lacks := terminal.database.snapshot(question)) is None:
        return
    shown = lacks._asdict() | {"sentence": str(lacks)}
    note(as_json({"truncated": shown}) if terminal.json else f"weir: {lacks}")


def _all(terminal: Terminal, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield events file by file."""
    slices, fields, _ = _plan(terminal, given)
    wanted = check_columns(given.stream, to_arrow(fields), _columns(given.columns))
    for whole in slices:
        for first in range(whole.first_row, whole.end_row, _BATCH):
            part = whole._replace(first_row=first, end_row=min(first + _BATCH, whole.end_row))
            yield from _rows(read_slice(terminal.settings, part, fields, wanted))


def _matching(terminal: Terminal, given: argparse.Namespace) -> Iterator[dict[str, object]]:
    """Yield the events that have the event times asked for and fulfil the condition, file by file:
    first where they are, then they."""
    slices, fields, match = _plan(terminal, given)
    schema = to_read(fields)
    wanted = check_columns(given.stream, schema, _columns(given.columns))
    matches = [match] if match else []
    matches += [fulfilling(given.where, schema)] if given.where else []
    columns = list(dict.fromkeys(name for one in matches for name in one.columns))
    for whole in slices:
        rows = read_rows(terminal.settings, whole, schema, columns)
        for one in matches:
            rows = rows.filter(one.rows(rows))
        places = iter(rows["_offset"].to_pylist())
        while offsets := list(islice(places, _BATCH)):
            first, last = offsets[0] - whole.start_offset, offsets[-1] - whole.start_offset
            part = whole._replace(first_row=first, end_row=last + 1)
            read = read_slice(terminal.settings, part, fields, wanted)
            yield from _rows(read.filter(pc.is_in(read["_offset"], pa.array(offsets, pa.int64()))))


def _rows(found: pa.Table) -> list[dict[str, object]]:
    """Return events with their segments as people write them, and their clocks as times."""
    return [
        row | {"_segment": segment_name(row["_segment"]), "_clock": clock_time(row["_clock"])}
        for row in rows_of(found)
    ]


def _columns(given: str | None) -> list[str] | None:
    return None if given is None else [one.strip() for one in given.split(",") if one.strip()]


def _most(terminal: Terminal, given: str | None, usual: int) -> int:
    """Return how many rows to show, 0 for all: what was given, or for people what is usual."""
    return usual if given is None and not terminal.json else _number(given, "--limit", least=0)


def _number(given: str | None, option: str, *, least: int) -> int:
    """Return the number that was given for an option; 0 for none. Raises InvalidInput."""
    if given is None:
        return 0
    if not (given.isascii() and given.isdecimal()) or len(given) > _DIGITS or int(given) < least:
        raise InvalidInput(
            "argument_invalid",
            f"{option} is {given!r}; it must be a whole number of at least {least} and at most "
            f"{_DIGITS} digits.",
        )
    return int(given)


def _checked(terminal: Terminal, stream: str | None) -> str | None:
    """Return the name of a stream that exists. Raises InvalidInput or NotFound."""
    if stream is None:
        return None
    name = stream_name(stream)
    terminal.database.snapshot(lambda c: read_stream(c, name))
    return str(name)
