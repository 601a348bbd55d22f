"""A stream as a map: key space over time, in a bounded number of rectangles."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime, BaseModel

from weir.history import key_map
from weir.history.levels import levels_of
from weir.model.clock import SECOND, clock_time, to_clock
from weir.model.names import stream_name
from weir.pages.answering import Asked, Tagged

router = APIRouter(route_class=Tagged, tags=["streams"])


class Part(BaseModel):
    """A part of a time in which events came. `level`: the colour of its rate.

    A commit is spread over the time since the one before it, so `events` may have fractions.
    """

    since: datetime
    until: datetime
    events: float
    level: int


class Area(BaseModel):
    """A segment, or a row of the key space that many share: then `segment` is null.

    `since`, `until` and `events` are of all its life, also outside of the times of the map; of a
    row, of these times.
    """

    segment: str | None
    segments: int
    key_low: float
    key_high: float
    since: datetime
    until: datetime
    events: float
    parts: list[Part]


class Mark(BaseModel):
    """Changes of a kind, close to each other: `scale`, `policy`, `roll` or `cut`."""

    kind: str
    at: datetime
    number: int


class Point(BaseModel):
    """Where a line is in a part of the key space."""

    key_low: float
    key_high: float
    at: datetime


class Line(BaseModel):
    """The head of the stream (`reader_group` is null), or the position of a group."""

    reader_group: str | None
    points: list[Point]


class Level(BaseModel):
    """A colour, and which rates have it, in events per second."""

    kind: str
    words: str


class KeyMap(BaseModel):
    """A stream from `since` to `until`, of what there is from `begins` to `ends`."""

    stream: str
    begins: datetime
    ends: datetime
    since: datetime
    until: datetime
    aggregated: bool
    areas: list[Area]
    marks: list[Mark]
    lines: list[Line]
    levels: list[Level]


@router.get("/streams/{scope}/{name}/map")
def show_map(
    asked: Asked,
    scope: str,
    name: str,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    width: Annotated[int, Query(ge=100, le=10_000)] = 1000,
) -> KeyMap:
    """Return the key space of a stream over time, for a picture that is `width` pixels wide. Five
    statements. Segments that are too many for rectangles of their own share the rows of a grid."""
    stream = stream_name(f"{scope}/{name}")
    begin, end = (None if one is None else to_clock(one) for one in (since, until))
    of = asked.snapshot(lambda c: key_map.key_map(c, stream, begin, end, width))
    levels = levels_of([part.rate for one in of.areas for part in one.parts], "events")
    return KeyMap(
        stream=of.stream, begins=clock_time(of.first), ends=clock_time(of.last),
        since=clock_time(of.begin), until=clock_time(of.end),
        aggregated=any(one.segment is None for one in of.areas),
        areas=[
            Area(
                segment=one.segment, segments=one.segments, key_low=one.key_low,
                key_high=one.key_high, since=clock_time(one.begin), until=clock_time(one.end),
                events=round(one.events, 3),
                parts=[
                    Part(
                        since=clock_time(low), until=clock_time(high), level=levels.of(rate),
                        events=round(rate * (high - low) / SECOND, 3),
                    )
                    for low, high, rate in one.parts
                ],
            )
            for one in of.areas
        ],
        marks=[Mark(kind=kind, at=clock_time(at), number=many) for kind, at, many in of.changes],
        lines=[
            Line(
                reader_group=one.reader_group,
                points=[
                    Point(key_low=low, key_high=high, at=clock_time(at))
                    for low, high, at in one.points
                ],
            )
            for one in of.lines
        ],
        levels=[Level(kind=kind, words=words) for kind, words in levels.legend()],
    )  # fmt: skip
