"""Play commits against a scaling policy: which scales `weir_scale` would make, and when. Pure.

It decides by the functions that the real run uses: `rates_of`, `decide` and `split_points`. No rule
of scaling may be written a second time here. What it
leaves out: an append that began before a scale and commits after it goes where its keys lie then
(in a stream it makes a roll), and a run takes no time.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import NamedTuple

from weir.model.key_space import KEY_SPACE, KeyRange, even_split
from weir.model.scale_decision import ScaleDecision, SegmentLoad, decide
from weir.model.scaling_policy import ScalingPolicy
from weir.model.segment import Segment, segment_id
from weir.model.segment_rates import (
    MINUTE,
    Commit,
    Rates,
    interval_between,
    measured_until,
    rates_of,
    windows_of,
)
from weir.model.split_points import HotKey, Load, SplitPoints, split_points

EVERY = 5 * MINUTE  # between two runs of weir_scale
UNIFORM = 1024  # loads that stand for an even spread over a range
_WEIGHTS = 1 << 40  # what the weights of a sample add up to, about


class Spread:
    """How the events of a commit are spread over the key space. Shares add up to 1."""

    def __init__(self, loads: Iterable[Load]) -> None:
        """`loads`: as for `split_points`; at least one with a weight above 0."""
        self.loads = sorted(loads)
        self._positions = [one.position for one in self.loads]
        self.low, self.high = self._positions[0], self._positions[-1]
        self._sums = [0, *accumulate(one.weight for one in self.loads)]

    @classmethod
    def even(cls, within: KeyRange = KEY_SPACE, parts: int = UNIFORM) -> "Spread":
        """Return events that are spread evenly over a range, in equal parts."""
        return cls(Load(part.low, 1) for part in even_split(parts, within))

    def share(self, low: float, high: float) -> float:
        """Return the share of the events whose keys lie in `[low, high)`."""
        first, past = bisect_left(self._positions, low), bisect_left(self._positions, high)
        return (self._sums[past] - self._sums[first]) / self._sums[-1]

    def loads_within(self, keys: KeyRange) -> list[Load]:
        """Return the loads with a position in a range."""
        first, past = (bisect_left(self._positions, key) for key in keys)
        return self.loads[first:past]

    def weighed(self, keys: KeyRange, amount: float) -> list[Load]:
        """Return the loads in a range with other weights, so that all loads add up to `amount`."""
        scale = amount / self._sums[-1]
        return [one._replace(weight=round(one.weight * scale)) for one in self.loads_within(keys)]


class Append(NamedTuple):
    """One commit: amounts (events or bytes), each with how it is spread over the key space."""

    clock: int
    parts: tuple[tuple[Spread, float], ...]


class Scale(NamedTuple):
    """A scale that the policy made: which segments were replaced, and by which."""

    clock: int
    epoch: int
    action: str
    reason: str
    sealed: tuple[Segment, ...]
    created: tuple[Segment, ...]


class Peak(NamedTuple):
    """What one run found: the largest rate per second of a segment, and how many there were."""

    clock: int
    rate: float
    segments: int


@dataclass
class SimulatedSegment:
    """A segment, from `begin` to `end` (None while it is active), and its commits."""

    segment: Segment
    begin: int
    end: int | None = None
    commits: list[Commit] = field(default_factory=list)
    clocks: list[int] = field(default_factory=list)

    @property
    def last(self) -> int:
        """The clock of its last commit; its creation before the first."""
        return self.clocks[-1] if self.clocks else self.begin

    def rates(self, until: int, interval: int) -> Rates:
        """Return its rates over the windows that end at `until`."""
        first = bisect_right(self.clocks, until - windows_of(interval)[-1])
        return rates_of(self.commits[first:], until, interval)


class Simulation:
    """A stream whose events are only counted, with a policy that scales it.

    `segments`: all that there ever were, by id; `scales`, `peaks`: by clock; `hot_keys`: those that
    a run found, with the clock of the first that did; `last`: the last decision.
    """

    def __init__(
        self, policy: ScalingPolicy, begin: int, ranges: Sequence[KeyRange] | None = None
    ) -> None:
        """`ranges`: of the segments to begin with, by key (default: the policy's minimum of equal
        ranges).
        """
        self.policy = policy
        self.epoch = 0
        self.segments: list[SimulatedSegment] = []
        self.active: list[SimulatedSegment] = []
        self.scales: list[Scale] = []
        self.peaks: list[Peak] = []
        self.hot_keys: dict[str, tuple[int, HotKey]] = {}
        self.last: ScaleDecision | None = None
        self._played = begin
        self._clocks: list[int] = []
        self._appends: list[Append] = []
        self._shares: dict[int, tuple[Spread, list[tuple[int, float]]]] = {}
        self._evaluated: tuple[int, int] | None = None
        self._create(ranges or even_split(policy.min_segments), begin)

    def play(self, appends: Iterable[Append], end: int, every: int = EVERY) -> None:
        """Play appends, in the order of their clocks, with a run after every `every`
        microseconds, up to `end`.
        """
        for one in appends:
            self._run_until(one.clock - 1, every)
            self.append(one)
        self._run_until(end, every)

    def _run_until(self, clock: int, every: int) -> None:
        run = (self._played // every + 1) * every
        while run <= clock:
            self.run(run)
            run += every
        self._played = max(self._played, clock)

    def append(self, one: Append) -> None:
        """Commit an append to the active segments."""
        amounts = [0.0] * len(self.active)
        for spread, amount in one.parts:
            for i, share in self._shares_of(spread):
                amounts[i] += amount * share
        for segment, amount in zip(self.active, amounts, strict=True):
            if whole := round(amount):
                segment.commits.append(Commit(one.clock, segment.last, whole))
                segment.clocks.append(one.clock)
        self._clocks.append(one.clock)
        self._appends.append(one)

    def run(self, now: int) -> None:
        """Evaluate the policy, as `weir_scale` does at `now`, and scale if it says so."""
        interval = interval_between(self._clocks)
        if interval is None:
            return
        until = measured_until(now, self._clocks[-1], interval)
        # Nothing but these two changes a decision.
        if self._evaluated == (until, self.epoch):
            return
        self._evaluated = (until, self.epoch)
        loads = [
            SegmentLoad(one.segment, one.rates(until, interval), until - one.begin)
            for one in self.active
        ]
        measured = [load.rates.over[2] for load in loads if load.rates]
        self.peaks.append(Peak(until, max(measured), len(loads)))
        if not self.policy.is_fixed:
            self._decide(loads, now, until - windows_of(interval)[-1])

    def change(self, ranges: Sequence[KeyRange], clock: int) -> None:
        """Replace segments, as recorded, so that the active ones have these key ranges."""
        wanted = {(one.low, one.high) for one in ranges}
        there = {(one.segment.key_low, one.segment.key_high) for one in self.active}
        gone = [s for s in self.active if (s.segment.key_low, s.segment.key_high) not in wanted]
        new = [KeyRange(*one) for one in sorted(wanted - there)]
        if new:
            self._replace([one.segment for one in gone], new, clock, "recorded", "")

    def _decide(self, loads: list[SegmentLoad], now: int, since: int) -> None:
        decision = decide(self.policy, loads)
        points: dict[Segment, SplitPoints] = {}
        recent: list[tuple[Spread, float]] | None = None
        most: dict[Segment, int] = {}
        while wanted := decision.to_measure(most):
            recent = self._recent(since) if recent is None else recent
            for (segment,), pieces, rate in wanted:
                points[segment] = self._points(segment, pieces, rate, recent)
                for key in points[segment].hot_keys:
                    self.hot_keys.setdefault(key.key, (now, key))
            most = {segment: len(one.points) + 1 for segment, one in points.items()}
            decision = decide(self.policy, loads, most)
        self.last = decision
        if decision.action == "none":
            return
        sealed: list[Segment] = []
        created: list[KeyRange] = []
        for change in decision.changes:
            inner = points[change.segments[0]].points if decision.action == "split" else ()
            bounds = [change.segments[0].key_low, *inner, change.segments[-1].key_high]
            sealed += change.segments
            created += [KeyRange(low, high) for low, high in pairwise(bounds)]
        self._replace(sealed, created, now, decision.action, decision.reason)

    def _recent(self, since: int) -> list[tuple[Spread, float]]:
        """Return the spreads of the appends after a clock, each with its share of their amount."""
        amounts: dict[int, tuple[Spread, float]] = {}
        for one in self._appends[bisect_right(self._appends, since, key=lambda a: a.clock) :]:
            for spread, amount in one.parts:
                before = amounts.get(id(spread), (spread, 0.0))[1]
                amounts[id(spread)] = (spread, before + amount)
        total = sum(amount for _, amount in amounts.values())
        return [(spread, amount / total) for spread, amount in amounts.values()]

    def _points(
        self, segment: Segment, pieces: int, rate: float, recent: Sequence[tuple[Spread, float]]
    ) -> SplitPoints:
        keys = KeyRange(segment.key_low, segment.key_high)
        loads: dict[tuple[float, str | None], int] = {}
        for spread, share in recent:
            if spread.low >= keys.high or spread.high < keys.low:
                continue
            for load in spread.weighed(keys, share * _WEIGHTS):
                at = (load.position, load.key)
                loads[at] = loads.get(at, 0) + load.weight
        target = (self.policy.target_rate or 0) / rate
        return split_points(
            segment.key_low, segment.key_high,
            [Load(position, weight, key) for (position, key), weight in loads.items()],
            pieces, target,
        )  # fmt: skip

    def _replace(
        self, sealed: Sequence[Segment], ranges: Sequence[KeyRange], clock: int, action: str,
        reason: str,
    ) -> None:  # fmt: skip
        gone = set(sealed)
        for one in self.active:
            if one.segment in gone:
                one.end = clock
        self.active = [one for one in self.active if one.end is None]
        self.epoch += 1
        created = self._create(ranges, clock)
        self.scales.append(Scale(clock, self.epoch, action, reason, tuple(sealed), created))

    def _create(self, ranges: Sequence[KeyRange], clock: int) -> tuple[Segment, ...]:
        number = len(self.segments)
        new = [
            Segment(segment_id(number + i, self.epoch), low, high)
            for i, (low, high) in enumerate(ranges)
        ]
        made = [SimulatedSegment(segment, clock) for segment in new]
        self.segments += made
        self.active = sorted([*self.active, *made], key=lambda one: one.segment.key_low)
        self._shares.clear()
        return tuple(new)

    def _shares_of(self, spread: Spread) -> list[tuple[int, float]]:
        """Return the active segments that a spread reaches, by key: their indexes among the active
        ones, each with its share.
        """
        found = self._shares.get(id(spread))
        if found is None:
            first = bisect_right(self.active, spread.low, key=lambda one: one.segment.key_low) - 1
            past = bisect_right(self.active, spread.high, key=lambda one: one.segment.key_low)
            shares = [
                (i, spread.share(one.segment.key_low, one.segment.key_high))
                for i, one in enumerate(self.active[first:past], first)
            ]
            found = self._shares[id(spread)] = (spread, shares)
        return found[1]
