"""Replay a scaling policy, real or imagined, over the recorded history of a stream.

Two simulations play the commits as they were recorded: one with the epochs that there really were,
one with the scales that the policy would have made. The same code measures both.
"""

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, TypedDict

from weir.annex.back_test.recorded import Recorded, recorded
from weir.annex.back_test.simulation import EVERY, UNIFORM, Append, Peak, Simulation, Spread
from weir.controller.locks import read_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.clock import say_time
from weir.model.key_space import KeyRange, tiles
from weir.model.names import StreamName
from weir.model.scaling_policy import ScalingPolicy
from weir.model.segment_rates import Commit
from weir.model.split_points import Load

# Where the events of a stream lie in the key space, as far as its files say.
FindLoads = Callable[[Recorded], Sequence[Load]]

ROWS = 12  # of the table: parts of the time that was replayed
MOST_SCALES = 100  # that the report lists
# Without a sample, a segment's events are spread over as many parts as these allow for all.
_PARTS, _FEWEST_PARTS = 1 << 18, 16
RECORDED, REPLAYED = "recorded", "with the policy"
SAMPLED = "from a sample of the stream's files"
EVENLY = "spread evenly within each recorded segment"
PARTLY = "from a sample of the stream's files; spread evenly within segments whose files are gone"


class Row(TypedDict):
    """What was at the end of a part of the time, or in it; recorded, and replayed."""

    until: str
    segments: list[int]
    largest_rate: list[float]
    changes: list[int]


class Summary(TypedDict):
    """The changes of a policy in sums, and the rates of its segments."""

    scales: int
    splits: int
    merges: int
    segments: int
    most_segments: int
    largest_rate: float
    median_largest_rate: float


@dataclass(frozen=True)
class BackTest:
    """What a policy would have made of a stream, beside what happened.

    `positions`: how is known where the events of a commit lie within a recorded segment.
    """

    stream: StreamName
    policy: ScalingPolicy
    past: Recorded
    happened: Simulation
    replayed: Simulation
    positions: str

    def report(self) -> dict[str, Any]:
        """Return the result as values for JSON; rates are per second, times in UTC."""
        listed = [
            {
                "at": say_time(one.clock), "epoch": one.epoch, "action": one.action,
                "reason": one.reason, "sealed": [s.name for s in one.sealed],
                "created": [[s.name, s.key_low, s.key_high] for s in one.created],
            }
            for one in self.replayed.scales[:MOST_SCALES]
        ]  # fmt: skip
        return {
            "stream": str(self.stream),
            "policy": dict(self.policy.__dict__),
            "since": say_time(self.past.begin),
            "until": say_time(self.past.end),
            "positions": self.positions,
            RECORDED: _summary(self.happened),
            REPLAYED: _summary(self.replayed),
            "hot_keys": [
                {"key": name, "since": say_time(clock), "share_of_its_segment": key.share}
                for name, (clock, key) in self.replayed.hot_keys.items()
            ],
            "scales": listed,
            "scales_not_listed": len(self.replayed.scales) - len(listed),
            "table": self._rows(),
        }

    def table(self) -> list[str]:
        """Return the result as lines of text."""
        unit = self.past.unit
        lines = [
            f"{self.stream} from {say_time(self.past.begin)} to {say_time(self.past.end)} UTC, "
            f"target {self.policy.target_rate} {unit}/s; positions {self.positions}",
            f"{'':19}  {'segments':>19}  {f'largest rate, {unit}/s':>23}  {'changes':>19}",
            f"{'until (UTC)':19}  {RECORDED:>8} {'policy':>10}  {RECORDED:>12} {'policy':>10}  "
            f"{RECORDED:>8} {'policy':>10}",
        ]
        lines += [
            f"{row['until']:19}  {row['segments'][0]:8} {row['segments'][1]:10}  "
            f"{row['largest_rate'][0]:12,.4g} {row['largest_rate'][1]:10,.4g}  "
            f"{row['changes'][0]:8} {row['changes'][1]:10}"
            for row in self._rows()
        ]
        lines += [
            f"{say_time(one.clock)}  epoch {one.epoch}: {one.reason}"
            for one in self.replayed.scales[:ROWS]
        ]
        more = len(self.replayed.scales) - ROWS
        return [*lines, f"and {more:,} more scales"] if more > 0 else lines

    def _rows(self) -> list[Row]:
        """Return the table: of each part of the time, the segments at its end, the largest rate in
        it, and the changes in it; each recorded and replayed.
        """
        length = self.past.end - self.past.begin
        bounds = [self.past.begin + length * i // ROWS for i in range(ROWS + 1)]
        both = (self.happened, self.replayed)
        return [
            {
                "until": say_time(end),
                "segments": [_segments_at(one, end) for one in both],
                "largest_rate": [_largest(one.peaks, begin, end) for one in both],
                "changes": [sum(begin < s.clock <= end for s in one.scales) for one in both],
            }
            for begin, end in pairwise(bounds)
        ]


def back_test(
    database: Database,
    stream: StreamName,
    policy: ScalingPolicy | None = None,
    *,
    since: datetime | None = None,
    find_loads: FindLoads | None = None,
    every: int = EVERY,
) -> BackTest:
    """Replay a policy over the history of a stream, and change nothing.

    `policy`: None for the stream's own. `since`: where to begin (None: at the stream's creation),
    with the segments that were active then. `find_loads`: where the events lie (`weir.spark`); None
    or nothing found: evenly within each recorded segment. `every`: microseconds between two runs.
    The number of statements does not depend on the length of the history.

    Raises InvalidInput for a policy that never scales, and if the history is too long or too short.
    """
    if policy is None:
        found = database.transaction(lambda c: read_stream(c, stream))
        policy = found.configuration.scaling_policy
    policy.check()
    if policy.is_fixed:
        raise InvalidInput(
            "argument_invalid",
            f"{stream} has no policy to replay, because its scaling is fixed; give a target rate "
            "and whether it counts events or bytes.",
        )
    past = recorded(database, stream, unit=policy.unit, since=since)
    loads = find_loads(past) if find_loads else ()
    spreads, positions = _spreads(past, loads)
    appends = _appends(past.commits, spreads)
    ranges, changes = _tilings(past)
    happened = Simulation(ScalingPolicy(), past.begin, ranges)
    replayed = Simulation(policy, past.begin, ranges)
    replayed.play(appends, past.end, every)
    done = 0
    for clock, tiling in changes:
        until = bisect_right(appends, clock, lo=done, key=lambda one: one.clock)
        happened.play(appends[done:until], clock, every)
        happened.run(clock)  # what the run saw that made the change
        happened.change(tiling, clock)
        done = until
    happened.play(appends[done:], past.end, every)
    return BackTest(stream, policy, past, happened, replayed, positions)


def _summary(simulation: Simulation) -> Summary:
    peaks = simulation.peaks
    return {
        "scales": len(simulation.scales),
        "splits": sum(len(one.created) > len(one.sealed) for one in simulation.scales),
        "merges": sum(len(one.created) < len(one.sealed) for one in simulation.scales),
        "segments": len(simulation.active),
        "most_segments": max((one.segments for one in peaks), default=len(simulation.active)),
        "largest_rate": max((one.rate for one in peaks), default=0.0),
        "median_largest_rate": _median(peaks),
    }


def _largest(peaks: Sequence[Peak], begin: int, end: int) -> float:
    """Return the largest rate that was measured in a time, or the last one before it."""
    first = bisect_right(peaks, begin, key=lambda one: one.clock)
    past = bisect_right(peaks, end, key=lambda one: one.clock)
    return max(
        (one.rate for one in peaks[first:past] or peaks[max(first - 1, 0) : first]), default=0.0
    )


def _median(peaks: Sequence[Peak]) -> float:
    rates = sorted(one.rate for one in peaks)
    return rates[len(rates) // 2] if rates else 0.0


def _segments_at(simulation: Simulation, clock: int) -> int:
    return sum(
        one.begin <= clock and (one.end is None or one.end > clock) for one in simulation.segments
    )


def _spreads(past: Recorded, loads: Sequence[Load]) -> tuple[dict[int, Spread], str]:
    """Return how the events of each recorded segment are spread, and in words how that is known."""
    spreads: dict[int, Spread] = {}
    shared: dict[KeyRange, Spread] = {}
    sampled = 0
    parts = max(_FEWEST_PARTS, min(UNIFORM, _PARTS // max(len(past.segments), 1)))
    whole = Spread(loads) if any(one.weight > 0 for one in loads) else None
    for one in past.segments:
        keys = KeyRange(one.key_low, one.key_high)
        if keys not in shared:
            inside = whole.loads_within(keys) if whole else []
            shared[keys] = Spread(inside) if inside else Spread.even(keys, parts)
            sampled += bool(inside)
        spreads[one.segment_id] = shared[keys]
    return spreads, EVENLY if not sampled else SAMPLED if sampled == len(shared) else PARTLY


def _appends(
    commits: Mapping[int, Sequence[Commit]], spreads: Mapping[int, Spread]
) -> list[Append]:
    """Return the commits of all segments as appends, by clock."""
    parts: dict[int, list[tuple[Spread, float]]] = {}
    for segment_id, entries in commits.items():
        for clock, _, amount in entries:
            parts.setdefault(clock, []).append((spreads[segment_id], float(amount)))
    return [Append(clock, tuple(parts[clock])) for clock in sorted(parts)]


def _tilings(past: Recorded) -> tuple[list[KeyRange], list[tuple[int, list[KeyRange]]]]:
    """Return the key ranges at the beginning, and those after each later change with its clock."""
    active: dict[int, KeyRange] = {}
    created: dict[int, list[int]] = {}
    sealed: dict[int, list[int]] = {}
    ranges = {}
    for one in past.segments:
        segment_id = one.segment_id
        ranges[segment_id] = KeyRange(one.key_low, one.key_high)
        created.setdefault(one.begin, []).append(segment_id)
        if one.ends is not None:
            sealed.setdefault(one.ends, []).append(segment_id)
    # A roll repeats two epochs, the older one for a moment; what it ends with was there before it.
    rolls = {one.clock for one in past.epochs if one.cause == "roll"}
    begin: list[KeyRange] = []
    changes: list[tuple[int, list[KeyRange]]] = []
    for clock in sorted(created.keys() | sealed.keys()):
        for segment_id in sealed.get(clock, ()):
            active.pop(segment_id, None)
        active |= {segment_id: ranges[segment_id] for segment_id in created.get(clock, ())}
        now = sorted(active.values())
        # What lies below the head may be pruned: then the first epochs are not whole.
        if clock in rolls or not tiles(now):
            continue
        if clock <= past.begin or not begin:
            begin = now
        else:
            changes.append((clock, now))
    return begin or [KeyRange(0.0, 1.0)], changes
