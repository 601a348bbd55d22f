"""Decide which segments of a stream to split or to merge, by its policy and its rates. Pure.

The rules are semantics 7.2 and 7.3. Where a split lies is decided later, by the data
(`weir.model.split_points`). Merged neighbours have at most half the target: with 0.75 of it, loads
that vary by half made 440 changes after settling, with half of it 16.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

from weir.model.clock import SECOND
from weir.model.key_space import STEPS
from weir.model.scaling_policy import MOST_SEGMENTS, ScalingPolicy
from weir.model.segment import Segment
from weir.model.segment_rates import Rates

# The rate beyond which a segment is hot, in targets, over 2, 5 and 10 minutes.
HOT = (5.0, 2.0, 1.0)
COLD = 0.5  # the rate over 20 minutes below which a segment is cold, in targets
MERGE_AT_MOST = 3  # segments into one
# The rate of what a merge makes, in targets: so far below 1 that noise does not split it again.
MERGED = 0.5


class SegmentLoad(NamedTuple):
    """An active segment and its load.

    `rates`: None while the stream has too few commits to know its interval. `age`: the microseconds
    from its creation to the end of the windows. A copy that a roll made has both from its original.
    """

    segment: Segment
    rates: Rates | None
    age: int


class Change(NamedTuple):
    """Segments to replace, neighbours, by `pieces` new ones; `rate`: per second, of all of them."""

    segments: tuple[Segment, ...]
    pieces: int
    rate: float


@dataclass(frozen=True)
class ScaleDecision:
    """What to do with a stream in one scale, and why.

    `action`: `split`, `merge` or `none`. `rule`: why, in one word. `reason`: in words; for `none`
    without numbers that change from run to run. `hot`: all segments over the target, also those
    that cannot be split, each with the pieces that its load asks for.
    """

    action: str
    rule: str
    reason: str
    changes: tuple[Change, ...] = ()
    hot: tuple[Change, ...] = ()

    def to_measure(self, divided: Mapping[Segment, int]) -> list[Change]:
        """Return the hot segments whose keys have to be looked at, and into how many pieces their
        data is to be divided: all of them, because each may have hot keys (semantics 7.5).

        `divided`: into how many pieces the data of those that were looked at can be divided.
        """
        splits = {one.segments: one for one in self.changes} if self.action == "split" else {}
        return [
            splits.get(one.segments, one)
            for one in self.hot
            if (pieces := divided.get(one.segments[0])) is None
            or (one.segments in splits and splits[one.segments].pieces != pieces)
        ]


def decide(
    policy: ScalingPolicy,
    loads: Sequence[SegmentLoad],
    most: Mapping[Segment, int] = MappingProxyType({}),
) -> ScaleDecision:
    """Return the decision about a stream. `loads`: all its active segments, by key. `most`: into
    how many pieces the data of a segment can be divided, where that is known; 1 if one key is
    everything in it.
    """
    if policy.is_fixed:
        return ScaleDecision("none", "fixed", "the stream does not scale by load")
    if any(load.rates is None for load in loads):
        return ScaleDecision(
            "none", "no_interval",
            "the stream has fewer than two commits, so its interval between commits is not known",
        )  # fmt: skip
    hot = tuple(
        Change(
            (load.segment,),
            min(_pieces(policy, load.segment, rate), most.get(load.segment, MOST_SEGMENTS)),
            rate,
        )
        for load in loads
        if (rate := hot_rate(policy, load)) is not None
    )
    room = None if policy.max_segments is None else policy.max_segments - len(loads)
    splits = _fitting([one for one in hot if one.pieces > 1], room)
    if splits:
        return ScaleDecision("split", "hot", _why_split(policy, splits), splits, hot)
    merges = _merges(policy, loads)
    if merges:
        return ScaleDecision("merge", "cold", _why_merge(policy, merges), merges, hot)
    rule, reason = _why_nothing(policy, loads, hot)
    return ScaleDecision("none", rule, reason, hot=hot)


def hot_rate(policy: ScalingPolicy, load: SegmentLoad) -> float | None:
    """Return the rate by which a segment is split; None if it is not hot, or too young to say."""
    assert load.rates is not None
    assert policy.target_rate is not None
    if load.age <= policy.cooldown * SECOND:
        return None
    target, rates = policy.target_rate, load.rates
    if any(
        rate > limit * target and load.age > window
        for rate, limit, window in zip(rates.over, HOT, rates.windows, strict=False)
    ):
        return max(rates.over[:3])
    return None


def is_cold(policy: ScalingPolicy, load: SegmentLoad) -> bool:
    """Return whether a segment has so little load that it may be merged with cold neighbours."""
    assert load.rates is not None
    assert policy.target_rate is not None
    target, rates = policy.target_rate, load.rates
    return (
        max(rates.over[:3]) < target
        and rates.over[3] < COLD * target
        and load.age > max(rates.windows[3], policy.cooldown * SECOND)
    )


def _pieces(policy: ScalingPolicy, segment: Segment, rate: float) -> int:
    """Return into how many segments a hot one is split; 1 if it holds a single position."""
    assert policy.target_rate is not None
    assert policy.scale_factor is not None
    positions = int((segment.key_high - segment.key_low) * STEPS)
    return min(max(2, int(rate / policy.target_rate)), policy.scale_factor, max(positions, 1))


def _fitting(splits: Sequence[Change], room: int | None) -> tuple[Change, ...]:
    """Return the splits that the maximum allows, the hottest first, sorted by key."""
    chosen = []
    for one in sorted(splits, key=lambda one: (-one.rate, one.segments)):
        pieces = one.pieces if room is None else min(one.pieces, room + 1)
        if pieces > 1:
            chosen.append(one._replace(pieces=pieces))
            room = None if room is None else room - (pieces - 1)
    return tuple(sorted(chosen, key=lambda one: one.segments[0].key_low))


def _merges(policy: ScalingPolicy, loads: Sequence[SegmentLoad]) -> tuple[Change, ...]:
    """Return the merges of cold neighbours, from the lowest key on, that the minimum allows."""
    room = len(loads) - policy.min_segments
    merges: list[Change] = []
    group: list[SegmentLoad] = []

    def end_group() -> None:
        if len(group) > 1:
            merges.append(Change(tuple(g.segment for g in group), 1, _total(group)))
        group.clear()

    for load in loads:
        cold = is_cold(policy, load)
        if not (
            cold
            and group
            and group[-1].segment.key_high == load.segment.key_low
            and len(group) < MERGE_AT_MOST
            and room > 0
            and _total([*group, load]) <= MERGED * float(policy.target_rate or 0)
        ):
            end_group()
        if cold:
            room -= bool(group)
            group.append(load)
    end_group()
    return tuple(merges)


def _total(loads: Sequence[SegmentLoad]) -> float:
    """Return the rate of several segments together: the largest over any window."""
    return max(
        sum(load.rates.over[i] for load in loads if load.rates is not None) for i in range(4)
    )


def _why_split(policy: ScalingPolicy, splits: Sequence[Change]) -> str:
    listed = ", ".join(
        f"{one.segments[0].name} ({_rate(one.rate)}) into {one.pieces}" for one in splits[:3]
    )
    more = f" and {len(splits) - 3} more" if len(splits) > 3 else ""
    return (
        f"split {listed}{more}: more {policy.unit} per second than the target of "
        f"{policy.target_rate}"
    )


def _why_merge(policy: ScalingPolicy, merges: Sequence[Change]) -> str:
    listed = ", ".join(
        f"{' + '.join(s.name for s in one.segments)} ({_rate(one.rate)})" for one in merges[:3]
    )
    more = f" and {len(merges) - 3} more" if len(merges) > 3 else ""
    return (
        f"merge {listed}{more}: cold neighbours, together at most {MERGED:.0%} of the target of "
        f"{policy.target_rate} {policy.unit} per second"
    )


def _why_nothing(
    policy: ScalingPolicy, loads: Sequence[SegmentLoad], hot: Sequence[Change]
) -> tuple[str, str]:
    names = ", ".join(one.segments[0].name for one in hot[:3]) + (", ..." if len(hot) > 3 else "")
    if any(one.pieces > 1 for one in hot):
        return "at_maximum", (
            f"segment {names} has more than the target, but the stream has its maximum of "
            f"{policy.max_segments} segments"
        )
    if hot:
        return "one_key", (
            f"segment {names} has more than the target, but one key is everything in it, and a "
            "key can't be split"
        )
    if any(_too_young(policy, load) for load in loads):
        return "too_young", "some segments are younger than the cool-down or than their windows"
    cold = [is_cold(policy, load) for load in loads]
    if not any(cold):
        return "steady", "no segment is hot, and none is cold"
    if len(loads) == policy.min_segments:
        return "at_minimum", (
            f"some segments are cold, but the stream has its minimum of {policy.min_segments}"
        )
    if not any(
        a and b and x.segment.key_high == y.segment.key_low
        for (a, x), (b, y) in pairwise(zip(cold, loads, strict=True))
    ):
        return "no_cold_neighbours", "some segments are cold, but no two neighbours are"
    return "merge_too_hot", (
        f"some neighbours are cold, but together they have more than {MERGED:.0%} of the target"
    )


def _too_young(policy: ScalingPolicy, load: SegmentLoad) -> bool:
    """Return whether a segment has a load that would be hot or cold if it were older."""
    assert load.rates is not None
    grown = load._replace(age=1 << 62)
    return (hot_rate(policy, grown) is not None and hot_rate(policy, load) is None) or (
        is_cold(policy, grown) and not is_cold(policy, load)
    )


def _rate(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s"
