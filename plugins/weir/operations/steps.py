"""The seams of periodic jobs: what an annex does in them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weir.operations.action import Job


@dataclass(frozen=True)
class UpkeepStep:
    """A step of `weir_upkeep`.

    `name`: that of its part of the report. `run`: does it, and returns that part: a dict for each
    thing that it tried, with an `error` if it failed; or anything else that needs no second look.
    `first`: whether it comes before the sweep, which then deletes what the step lets go.
    """

    name: str
    run: Callable[[Job], object]
    first: bool = False


@dataclass(frozen=True)
class CutStep:
    """What follows in `weir_stream_cuts` once all tails are recorded.

    `run`: does it, and adds a part to the report. `said`: returns what it did, for the sentence
    with which the job ends.
    """

    run: Callable[[Job, dict[str, object]], None]
    said: Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class Metric:
    """A metric that an annex puts into the view `metrics`, and what it is."""

    name: str
    about: str
