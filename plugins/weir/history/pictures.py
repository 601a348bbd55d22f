"""Pictures of a stream and of a reader group, as SVG: for mails, notebooks and pages of others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.times import Moment, parse_span
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.history.key_map import KeyMap, key_map
from weir.history.levels import say_rate
from weir.history.picture import WIDTH, draw
from weir.history.scene import ChartPanel, Picture, SegmentPanel, Series
from weir.history.slices import width_of_bin
from weir.history.time_axis import say_time
from weir.model.clock import to_clock
from weir.model.names import StreamName, reader_group_name, stream_name
from weir.reader_groups.locks import no_such_group

STREAMS = 8  # of a group, each of which has a chart: those with most unread events

# Changes of a number: (clock, by how much), those close to each other as one.
_CAME = """SELECT max(clock), sum({amount})
FROM commits_between(:id, CAST(:begin AS bigint) + 1, :end) GROUP BY (clock - :begin) / :width
ORDER BY 1"""
_TRUNCATED = """SELECT time_clock(truncated_at) AS clock, bytes FROM weir.truncations
WHERE stream = :stream AND truncated_at > clock_time(:begin) ORDER BY 1"""
_READ = """SELECT max(time_clock(b.committed_at)),
    sum((e ->> 'to')::bigint - (e ->> 'from')::bigint)
FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.bounds) e
WHERE b.group_id = :group AND b.state = 'committed' AND b.committed_at > clock_time(:begin)
    AND (e ->> 'stream')::bigint = :id
GROUP BY (time_clock(b.committed_at) - :begin) / :width ORDER BY 1"""
_KEPT = """SELECT s.bytes_retained, (SELECT n.bytes FROM weir.next_retention n
    WHERE n.stream = s.stream) FROM weir.streams s WHERE s.stream = :stream"""
# Old batches are pruned: what was read before the first one that is left is not known.
_GROUP = """SELECT g.group_id, now_clock() AS now, greatest(time_clock(g.created_at), (
    SELECT CASE WHEN b.batch_id > 1 THEN time_clock(b.opened_at) END FROM reader_batch b
    WHERE b.group_id = g.group_id ORDER BY b.batch_id LIMIT 1)) AS known
FROM reader_group g WHERE g.name = :name"""
_LAG = f"""SELECT stream, stream_id, unread_events FROM weir.lag WHERE reader_group = :name
ORDER BY unread_events DESC, stream LIMIT {STREAMS}"""  # noqa: S608 - a constant


def picture_of(
    database: Database, of: str, since: Moment | None = None, until: Moment | None = None
) -> str:
    """Return a picture of a stream, or of a reader group, as SVG.

    `of`: a stream (`scope/stream`): its segments over the key space and time, coloured by their
    rates, with scales, rolls, recorded cuts, its head and the positions of its reader groups; and
    the bytes that it kept, and that were truncated. Or a reader group: its unread events over time,
    of each stream that it reads. `since` and `until`: the time that is shown, as of `read`; None:
    all that is known.

    The text has no scripts, and colours for light and dark. It can be a file, be part of a page, or
    be shown in a notebook by `IPython.display.SVG`. Raises NotFound for the stream or the group,
    and InvalidInput if there is nothing between the times.
    """
    return draw(scene_of(database, of, since, until))


def scene_of(
    database: Database, of: str, since: Moment | None = None, until: Moment | None = None
) -> Picture:
    """Return what `picture_of` draws."""
    span = parse_span(since, until)
    begin, end = (None if at is None else to_clock(at) for at in span)
    if "/" in of:
        return database.snapshot(lambda c: _of_stream(c, stream_name(of), begin, end))
    return database.snapshot(lambda c: _of_group(c, reader_group_name(of), begin, end))


def _of_stream(
    connection: Connection, stream: StreamName, begin: int | None, end: int | None
) -> Picture:
    of = key_map(connection, stream, begin, end, WIDTH)
    panels: list[SegmentPanel | ChartPanel] = [
        of.panel("segments, and who has read how far"),
        _kept(connection, of),
    ]
    return Picture(of.stream, of.begin, of.end, panels)


def _of_group(
    connection: Connection, reader_group: str, since: int | None, until: int | None
) -> Picture:
    begin, end, found = unread_over_time(connection, reader_group, since, until)
    panels = [
        ChartPanel(
            f"unread events of {one.stream}, {one.now:,} now", [Series("unread", one.points)]
        )
        for one in found
    ]
    return Picture(f"reader group {reader_group}", begin, end, panels)


@dataclass(frozen=True)
class Unread:
    """How many events of a stream a group had not read, from each clock on, and now."""

    stream: str
    now: int
    points: list[tuple[int, float]]


def unread_over_time(
    connection: Connection, reader_group: str, since: int | None = None, until: int | None = None
) -> tuple[int, int, list[Unread]]:
    """Return between which clocks it is known what a group had not read, and that, of the `STREAMS`
    with most. It is what is unread now, counted back by what was appended and what batches have
    read since, as far as batches are recorded. Two statements, and two for each stream.

    Raises NotFound for the group, and InvalidInput if nothing is known between the times.
    """
    found = connection.execute(text(_GROUP), {"name": reader_group}).one_or_none()
    if found is None:
        raise no_such_group(reader_group)
    begin = found.known if since is None else max(since, found.known)
    end = found.now if until is None else min(until, found.now)
    if begin >= end:
        raise InvalidInput(
            "no_history",
            f"nothing is recorded of {reader_group} between these times: give a time to begin with "
            "that is before the one to end with, between "
            f"{say_time(found.known)} and {say_time(found.now)} UTC.",
        )
    unread = []
    for row in connection.execute(text(_LAG), {"name": reader_group}).all():
        over = {"id": row.stream_id, "begin": begin, "width": width_of_bin(begin, found.now)}
        came = _changes(connection, _CAME.format(amount="events"), end=found.now, **over)
        read = _changes(connection, _READ, group=found.group_id, **over)
        points = _counted_back(row.unread_events, begin, end, came, read)
        unread.append(Unread(row.stream, row.unread_events, points))
    return begin, end, unread


def _kept(connection: Connection, of: KeyMap) -> ChartPanel:
    """Return the chart of what a stream kept, and of what retention took away."""
    came = _changes(
        connection, _CAME.format(amount="bytes"), id=of.stream_id, begin=of.begin, end=of.last,
        width=width_of_bin(of.begin, of.last),
    )  # fmt: skip
    gone = _changes(connection, _TRUNCATED, stream=of.stream, begin=of.begin)
    kept, next_time = connection.execute(text(_KEPT), {"stream": of.stream}).one()
    heading = f"bytes: {say_rate(kept)} kept now"
    if next_time:
        heading += f", of which the next retention truncates {say_rate(next_time)}"
    whole = sum(amount for _, amount in gone)
    return ChartPanel(
        heading,
        [
            Series("truncated in this time", _counted_back(whole, of.begin, of.end, gone, [])),
            Series("kept", _counted_back(kept, of.begin, of.end, came, gone)),
        ],
    )


def _changes(connection: Connection, statement: str, **given: Any) -> list[tuple[int, int]]:
    return [(clock, int(amount)) for clock, amount in connection.execute(text(statement), given)]


def _counted_back(
    now: int, begin: int, end: int, more: Sequence[tuple[int, int]],
    less: Sequence[tuple[int, int]],
) -> list[tuple[int, float]]:  # fmt: skip
    """Return a number over time, of which only the value of now and its changes are known."""
    changes = sorted([*more, *((clock, -amount) for clock, amount in less)])
    value = now - sum(amount for _, amount in changes)
    points = [(begin, float(max(value, 0)))]
    for clock, amount in changes:
        value += amount
        if clock <= end:
            points.append((clock, float(max(value, 0))))
    return points
