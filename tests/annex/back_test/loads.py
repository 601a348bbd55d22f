"""Invented loads with fixed seeds, for policies that are played."""

import math
import random
from collections.abc import Callable, Iterator

from weir.annex.back_test.simulation import Append, Simulation, Spread
from weir.model.clock import SECOND
from weir.model.key_space import STEPS, KeyRange
from weir.model.scaling_policy import ScalingPolicy
from weir.model.split_points import Load

BEGIN = 1_767_225_600 * SECOND  # 2026-01-01
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
EVEN = Spread.even()
Rate = Callable[[int], float]  # events per second, by the time since the beginning


def policy(**options: int) -> ScalingPolicy:
    """Return a policy by events per second: 100 for each segment, with splits into at most four."""
    return ScalingPolicy(
        "event_rate", **{"target_rate": 100, "scale_factor": 4, "min_segments": 1, **options}
    )


def zipf(exponent: float, keys: int = 2000, seed: int = 1) -> Spread:
    """Return keys at random positions, the k-th of which has a weight of 1 / k ** exponent."""
    draws = random.Random(seed)
    return Spread(
        Load(draws.randrange(STEPS) / STEPS, round(1e9 / k**exponent), f"key-{k}")
        for k in range(1, keys + 1)
    )


def appends(
    rate: float | Rate,
    every: int,
    length: int,
    spread: Spread | Callable[[int], Spread] = EVEN,
    *,
    noise: float = 0.0,
    seed: int = 1,
) -> Iterator[Append]:
    """Yield a commit after every `every` microseconds, with what came since the one before.

    `noise`: how far an amount may be from its mean, as a share of it.
    """
    draws = random.Random(seed)
    for end in range(every, length + 1, every):
        # Ten samples of a rate that changes within the interval.
        moments = [end - every * i // 10 for i in range(10)]
        mean = rate if isinstance(rate, float) else sum(map(rate, moments)) / 10
        amount = mean * every / SECOND * draws.uniform(1 - noise, 1 + noise)
        if amount > 0:
            yield Append(BEGIN + end, ((spread(end) if callable(spread) else spread, amount),))


def played(
    chosen: ScalingPolicy, commits: Iterator[Append], length: int, *, name: str
) -> Simulation:
    """Return a simulation that has played commits for `length` microseconds, and print what became
    of it."""
    simulation = Simulation(chosen, BEGIN)
    simulation.play(commits, BEGIN + length)
    changes = [
        f"{(one.clock - BEGIN) / HOUR:.1f} h {one.action} to {one.epoch}"
        for one in simulation.scales
    ]
    last = simulation.peaks[-1]
    print(
        f"\n{name}: {len(changes)} scales ({'; '.join(changes[:6])}"
        f"{'; ...' if len(changes) > 6 else ''}), {last.segments} segments, largest rate "
        f"{last.rate:.0f}"
    )
    return simulation


def ranges(simulation: Simulation) -> list[KeyRange]:
    """Return the key ranges of the active segments."""
    return [KeyRange(one.segment.key_low, one.segment.key_high) for one in simulation.active]


def daily(low: float, high: float) -> Rate:
    """Return a rate that is low at midnight and high at noon."""
    return lambda at: low + (high - low) * (1 - math.cos(2 * math.pi * at / DAY)) / 2
