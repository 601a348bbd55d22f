"""What a picture shows: segments and numbers over time. Pure; times are microseconds since 1970."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Slice(NamedTuple):
    """A part of a segment's life, and its rate per second."""

    begin: int
    end: int
    rate: float


class SegmentDrawn(NamedTuple):
    """A segment: `end` is None while it is active; `rates` are in order and do not overlap.

    `amount`: what it got in all, such as events.
    """

    name: str
    key_low: float
    key_high: float
    begin: int
    end: int | None
    amount: int
    rates: tuple[Slice, ...] = ()


class Mark(NamedTuple):
    """A moment at which the segments changed. `kind`: `policy` (a scale that the policy decided),
    `scale` (any other) or `roll`; or `cut`, at which the retention set recorded the tail.
    """

    clock: int
    kind: str
    label: str


class HeadPart(NamedTuple):
    """The head of the stream in a part of the key space: what is before `clock` is truncated."""

    key_low: float
    key_high: float
    clock: int


class Position(NamedTuple):
    """How far a reader group has come in each part of the key space."""

    reader_group: str
    parts: Sequence[HeadPart]


@dataclass(frozen=True)
class SegmentPanel:
    """Segments as rectangles. The head is left out if the stream begins at its creation."""

    heading: str
    segments: Sequence[SegmentDrawn]
    marks: Sequence[Mark] = ()
    head: Sequence[HeadPart] = ()
    positions: Sequence[Position] = ()


class Series(NamedTuple):
    """A number over time that keeps each value until the next (clock, value)."""

    name: str
    points: Sequence[tuple[int, float]]


@dataclass(frozen=True)
class ChartPanel:
    """One or two numbers over time; `limit`: a line across, with its name."""

    heading: str
    series: Sequence[Series]
    limit: tuple[str, float] | None = None


@dataclass(frozen=True)
class Picture:
    """A picture of what is between two times. `unit`: what rates count; `target`: the rate per
    segment that a policy wants, if there is one."""

    title: str
    begin: int
    end: int
    panels: Sequence[SegmentPanel | ChartPanel]
    unit: str = "events"
    target: float | None = None
