"""Several streams or groups over hours and weeks, in the parts of time of which something is
recorded (the function `history_grains`), and where they are going: what groups will not have read,
by the rates of the last hour, and what retention truncates tonight and within a week, by its own
rule."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.errors import InvalidInput, NotFound
from weir.pages.answering import Asked, Tagged
from weir.pages.retention import by_midnight
from weir.queries.pages import groups as groups_sql
from weir.queries.pages import retention as retention_sql
from weir.queries.pages import timeline as sql

router = APIRouter(route_class=Tagged, tags=["over time"])

MOST = 8  # lines of a kind
CHOSEN = 4  # of those that have moved last, if nobody chooses
POINTS = 240  # of a line
LOOKED = 6000  # looks into what is recorded of groups: those of many streams have fewer points
HOURS = 26_280  # three years, as far as anything is recorded
BY_HOURS = 168  # owners are shown by hours in as long a time, else by days
AHEAD = 3  # a forecast is as long as this part of the time that is shown


class Point(BaseModel):
    """What is foretold for a time."""

    at: datetime
    value: float


class StreamLine(BaseModel):
    """A stream: events and bytes per second that were appended from each time on, and the bytes
    that it kept at each; null where that is not known. `goes`: what retention truncates by tonight
    and in a week, if nothing is appended, read or released."""

    stream: str
    owner: str | None
    events: list[float | None]
    bytes: list[float | None]
    kept: list[int | None]
    goes: list[retention_sql.Goes]


class GroupLine(BaseModel):
    """A reader group: events per second that it read from each time on, and the events and bytes
    that it had not read at each. `forecast`: the events that it will not have read, at the rates of
    the last hour; `caught_up_at`: when these are none, if ever."""

    group: str
    read: list[float | None]
    unread: list[int | None]
    unread_bytes: list[int | None]
    forecast: list[Point]
    caught_up_at: datetime | None
    pace: groups_sql.CatchUp | None


class Timeline(BaseModel):
    """Lines over some times, `step` seconds apart; the last time is when they end."""

    at: list[datetime]
    step: int
    streams: list[StreamLine]
    groups: list[GroupLine]


class OwnerLine(BaseModel):
    """What the streams of an owner kept; `owner` is null for those of nobody."""

    owner: str | None
    streams: int
    bytes: list[int | None]


class Owners(BaseModel):
    """The owners whose streams keep most, and the bytes of all others together."""

    at: list[datetime]
    owners: list[OwnerLine]
    others: list[int]


class Span(NamedTuple):
    """Times from which on lines have values, and whether the last of them is now."""

    times: list[datetime]
    step: int
    now: datetime | None

    @property
    def edges(self) -> list[datetime]:
        """All times that are shown."""
        return self.times if self.now is None else [*self.times, self.now]


Hours = Annotated[int, Query(ge=1, le=HOURS, description="how long a time is shown")]


@router.get("/time")
def show_time(
    asked: Asked,
    of: Annotated[str, Query(description="streams and reader groups, by commas")] = "",
    hours: Hours = 24,
    until: Annotated[datetime | None, Query(description="when it ends; now, if not given")] = None,
) -> Timeline:
    """Return streams and reader groups over time; without any, those that have moved last. Six
    statements, and one for each group."""

    def read(c: Connection) -> Timeline:
        streams, groups = _named(of) if of else _newest(c)
        age = timedelta(hours=hours)
        if until is not None:
            past = datetime.now(UTC) - _aware(until)
            if past > timedelta(hours=HOURS):
                raise InvalidInput(
                    "argument_invalid", "until is more than three years ago; nothing is recorded "
                    "of that.",
                )  # fmt: skip
            age += max(past, timedelta())
        known = sql.asked(c, age=age, groups=groups)
        span = span_of(known.now, known.grain, hours, until, max(known.pairs, 1))
        return Timeline(
            at=span.edges, step=span.step,
            streams=_streams(c, streams, span, known.grain) if streams else [],
            groups=_groups(c, groups, span, known.grain) if groups else [],
        )  # fmt: skip

    return asked.snapshot(read)


@router.get("/time/owners")
def show_owners(asked: Asked, hours: Hours = 720) -> Owners:
    """Return what the streams of each owner kept over time. One statement."""

    def read(c: Connection) -> Owners:
        grain = 3600 if hours <= BY_HOURS else 86400
        rows = sql.owners(c, grain=grain, since=datetime.now(UTC) - timedelta(hours=hours))
        at = sorted({row.at for row in rows})
        found: dict[str, dict[datetime, sql.Owners]] = {}
        for row in rows:
            found.setdefault(row.owner, {})[row.at] = row
        lines = [
            OwnerLine(
                owner=owner or None, streams=kept[max(kept)].streams,
                bytes=[kept[one].bytes if one in kept else None for one in at],
            )
            for owner, kept in found.items()
        ]  # fmt: skip
        lines.sort(key=lambda one: (-(one.bytes[-1] or 0), one.owner or ""))
        rest = lines[MOST:]
        others = [sum(one.bytes[i] or 0 for one in rest) for i in range(len(at))] if rest else []
        return Owners(at=at, owners=lines[:MOST], others=others)

    return asked.snapshot(read)


def _named(of: str) -> tuple[list[str], list[str]]:
    names = list(dict.fromkeys(one.strip() for one in of.split(",") if one.strip()))
    streams = [one for one in names if "/" in one]
    groups = [one for one in names if "/" not in one]
    if max(len(streams), len(groups)) > MOST:
        raise InvalidInput(
            "argument_invalid",
            f"of names {len(streams)} streams and {len(groups)} reader groups; name at most {MOST} "
            "of each.",
        )
    return streams, groups


def _newest(c: Connection) -> tuple[list[str], list[str]]:
    found = sql.newest(c, most=CHOSEN)
    return found.streams, found.groups


def span_of(now: datetime, grain: int, hours: int, until: datetime | None, pairs: int = 1) -> Span:
    """Return the times of lines that end at a time, or now (None): whole parts of time of `grain`
    seconds, or of several of them, so that no line has more points than are worth a look."""
    end = now if until is None else min(_aware(until), now)
    length = hours * 3600
    most = max(min(POINTS, LOOKED // pairs), 12)
    step = grain * max(-(-length // (grain * most)), 1)
    last = int(end.timestamp()) // grain * grain
    times = [
        datetime.fromtimestamp(last - i * step, UTC) for i in range(-(-length // step), -1, -1)
    ]
    if end < now:
        return Span(times, step, None)
    # What is too short for a rate belongs to the part before it.
    return Span(times[:-1] if len(times) > 1 and end > times[-1] else times, step, now)


def rates_of(
    edges: Sequence[datetime], recorded: Sequence[datetime | None], values: Sequence[int | None]
) -> list[float | None]:
    """Return how much a number grew per second from each time on to the next, by when it was
    recorded. Nothing is known before the first record and after the last; a number that becomes
    smaller (because a group was reset, or events erased) does not grow."""
    points: list[tuple[datetime, int]] = []
    for at, value in zip(recorded, values, strict=True):
        if at is not None and value is not None and (not points or at > points[-1][0]):
            points.append((at, value))
    rates: list[float | None] = []
    nth = 0
    for begin, end in pairwise(edges):
        middle = begin + (end - begin) / 2
        while nth + 1 < len(points) and points[nth + 1][0] <= middle:
            nth += 1
        if nth + 1 >= len(points) or points[nth][0] > middle:
            rates.append(None)
            continue
        (since, before), (until, after) = points[nth], points[nth + 1]
        rates.append(max(after - before, 0) / (until - since).total_seconds())
    return [*rates, rates[-1] if rates else None]


def _streams(c: Connection, names: list[str], span: Span, grain: int) -> list[StreamLine]:
    past = sql.streams(c, times=span.times, grain=grain, names=names)
    if missing := _missing(names, [one.stream for one in past]):
        raise NotFound("stream_not_found", f"there is no stream {missing}.")
    gone = {name: [0] * len(span.times) for name in names}
    for row in sql.truncated(c, times=span.times, names=names):
        gone[row.stream][row.after - 1] = row.bytes
    goes = retention_sql.goes(c, times=[by_midnight(1), by_midnight(7)], names=names)
    lines = []
    for one in past:
        recorded, events, kept = [*one.recorded], [*one.events], [*one.bytes]
        below = one.gone - sum(gone[one.stream])
        there: list[int | None] = []
        for bytes_, more in zip(one.bytes, gone[one.stream], strict=True):
            there.append(None if bytes_ is None else max(bytes_ - below, 0))
            below += more
        if span.now is not None:
            recorded.append(span.now)
            events.append(one.events_now)
            kept.append(one.bytes_now)
            there.append(one.bytes_now - one.gone)
        lines.append(
            StreamLine(
                stream=one.stream, owner=one.owner, kept=there,
                events=rates_of(span.edges, recorded, events),
                bytes=rates_of(span.edges, recorded, kept),
                goes=[will for will in goes if will.stream == one.stream],
            )
        )  # fmt: skip
    return lines


def _groups(c: Connection, names: list[str], span: Span, grain: int) -> list[GroupLine]:
    past = sql.groups(c, times=span.times, grain=grain, names=names)
    if missing := _missing(names, [one.reader_group for one in past]):
        raise NotFound(
            "group_not_found", f"there is no reader group {missing} that reads a stream."
        )
    lines = []
    for one in past:
        recorded, read = [*one.recorded], [*one.read]
        unread, unread_bytes = [*one.unread], [*one.unread_bytes]
        pace = groups_sql.catch_up(c, group=one.reader_group)
        forecast: list[Point] = []
        caught_up_at = None
        if span.now is not None:
            recorded.append(span.now)
            read.append(one.read_now)
            unread.append(one.unread_now)
            unread_bytes.append(one.unread_bytes_now)
            if pace is not None and one.unread_now:
                length = (span.edges[-1] - span.edges[0]) / AHEAD
                forecast = _forecast(span.now, length, one.unread_now, pace)
                caught_up_at = None if pace.catch_up is None else span.now + pace.catch_up
        lines.append(
            GroupLine(
                group=one.reader_group, read=rates_of(span.edges, recorded, read), unread=unread,
                unread_bytes=unread_bytes, forecast=forecast, caught_up_at=caught_up_at, pace=pace,
            )
        )  # fmt: skip
    return lines


def _forecast(
    now: datetime, length: timedelta, unread: int, pace: groups_sql.CatchUp
) -> list[Point]:
    """Return a line from what is unread now to nothing, or as far as it goes in a time."""
    if pace.catch_up is not None and pace.catch_up <= length:
        return [Point(at=now, value=unread), Point(at=now + pace.catch_up, value=0)]
    grows = pace.append_rate - (pace.read_rate or 0)
    then = max(unread + grows * length.total_seconds(), 0)
    return [Point(at=now, value=unread), Point(at=now + length, value=then)]


def _aware(at: datetime) -> datetime:
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _missing(names: Sequence[str], found: Sequence[str]) -> str | None:
    return next((name for name in names if name not in found), None)
