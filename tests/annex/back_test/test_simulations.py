"""Policies played over invented loads: they settle, stay settled, and give back what they took.

Every scenario prints what became of it (`pytest -rP`, or when it fails).
"""

from itertools import pairwise

import pytest

from tests.annex.back_test.loads import (
    BEGIN,
    DAY,
    EVEN,
    HOUR,
    MINUTE,
    appends,
    daily,
    played,
    policy,
    ranges,
    zipf,
)
from weir.annex.back_test.simulation import Append, Simulation, Spread
from weir.model.clock import SECOND
from weir.model.key_space import KeyRange, even_split, tiles
from weir.model.split_points import Load

WRITERS = {"minute": (MINUTE, DAY), "hour": (HOUR, 20 * DAY), "day": (DAY, 300 * DAY)}
OFTEN = ["hour", *(pytest.param(name, marks=pytest.mark.release) for name in ("minute", "day"))]
SETTLED = 5  # scales at most, up to twenty times the target


def changed_after(simulation: Simulation, clock: int) -> list[str]:
    """The reasons of the scales after a time."""
    return [one.reason for one in simulation.scales if one.clock > BEGIN + clock]


@pytest.mark.parametrize("rate", [50.0, 150.0, 400.0, 1000.0, 2000.0])
@pytest.mark.parametrize("writer", OFTEN)
def test_a_steady_load_settles_within_five_scales_and_stays(writer: str, rate: float) -> None:
    every, length = WRITERS[writer]
    found = played(
        policy(), appends(rate, every, length), length, name=f"steady {rate:.0f}/s, each {writer}"
    )
    assert len(found.scales) <= SETTLED
    assert changed_after(found, length // 4) == []
    assert found.peaks[-1].rate <= 100


@pytest.mark.parametrize("writer", OFTEN[:2])
def test_zipf_keys_settle_and_noise_undoes_no_scale(writer: str) -> None:
    every, length = WRITERS[writer]
    for noise, most in ((0.1, 0), (0.3, 1)):
        for seed, rate in enumerate((120.0, 180.0, 333.0, 777.0)):
            commits = appends(rate, every, length, zipf(1.1, seed=seed), noise=noise, seed=seed)
            name = f"Zipf(1.1), {rate:.0f}/s +-{noise:.0%}, each {writer}"
            found = played(policy(), commits, length, name=name)
            assert {one.action for one in found.scales} == {"split"}
            # A segment close to the target may be split late, by an amount above the mean.
            assert len(changed_after(found, length // 4)) <= most


@pytest.mark.parametrize("writer", WRITERS)
def test_amounts_that_alternate_around_a_mean_below_the_target_change_nothing(writer: str) -> None:
    every, _ = WRITERS[writer]
    uneven = (
        Append(BEGIN + i * every, ((EVEN, (40 + 80 * (i % 2)) * every / SECOND),))
        for i in range(1, 100)
    )
    found = played(policy(), uneven, 100 * every, name=f"40/s and 120/s in turn, each {writer}")
    assert found.scales == []


@pytest.mark.parametrize("writer", WRITERS)
def test_a_commit_that_makes_up_for_a_pause_changes_nothing(writer: str) -> None:
    every, _ = WRITERS[writer]
    late = [
        Append(BEGIN + i * every, ((EVEN, (20 if i == 60 else 1) * 80.0 * every / SECOND),))
        for i in range(1, 100)
        if not 40 < i < 60
    ]
    found = played(policy(), iter(late), 100 * every, name=f"80/s, a pause of 19, each {writer}")
    assert found.scales == []


def test_cold_segments_that_are_no_neighbours_are_left() -> None:
    sides = [Load(i / 100, 1, f"key-{i}") for i in range(100)]
    middle = [Load(0.4 + i / 500, 40, f"hot-{i}") for i in range(100)]
    bounds = pairwise([0.0, 0.125, 0.375, 0.625, 0.875, 1.0])
    found = Simulation(policy(), BEGIN, [KeyRange(low, high) for low, high in bounds])
    found.play(appends(90.0, MINUTE, DAY, Spread([*sides, *middle])), BEGIN + DAY)
    print([(one.action, [s.name for s in one.sealed]) for one in found.scales])
    # The two on each side of the busy one in the middle are merged, and nothing across it.
    assert [one.low for one in ranges(found)] == [0.0, 0.375, 0.625]
    assert tiles(ranges(found))


@pytest.mark.parametrize(
    "spread",
    [
        pytest.param(EVEN, id="even"),
        pytest.param(zipf(1.1), id="zipf", marks=pytest.mark.release),
    ],
)
def test_writers_of_the_same_mean_rate_settle_with_the_same_segments(spread: Spread) -> None:
    settled = {
        name: ranges(
            played(policy(), appends(1000.0, every, length, spread), length, name=f"each {name}")
        )
        for name, (every, length) in {**WRITERS, "ten seconds": (MINUTE // 6, DAY // 6)}.items()
    }
    first = settled["ten seconds"]
    assert len(first) >= 10
    assert all(found == first for found in settled.values())


@pytest.mark.parametrize("writer", OFTEN)
def test_a_stream_is_back_at_its_minimum_when_the_load_ends(writer: str) -> None:
    every, _ = WRITERS[writer]
    found = Simulation(policy(min_segments=2), BEGIN)
    found.play(appends(1000.0, every, 40 * every), BEGIN + 40 * every)
    assert len(found.active) > 8
    found.play([], BEGIN + 120 * every)
    print(f"each {writer}: {[one.action for one in found.scales]}")
    assert len(found.active) == 2
    # Cold segments wait for the windows to end, and each merge makes one of three.
    assert sum(one.action == "merge" for one in found.scales) <= 4


def test_short_bursts_change_little_and_their_segments_are_given_back() -> None:
    found = played(
        policy(),
        appends(lambda at: 400.0 if at % (3 * HOUR) < MINUTE else 50.0, MINUTE, DAY),
        DAY, name="a minute of 400/s each three hours",
    )  # fmt: skip
    assert found.scales == []
    found = played(
        policy(),
        appends(lambda at: 2000.0 if at % (6 * HOUR) < HOUR else 50.0, MINUTE, DAY),
        DAY, name="an hour of 2,000/s each six hours",
    )  # fmt: skip
    assert max(peak.segments for peak in found.peaks) >= 16
    assert len(found.active) == 1
    # Per burst: three splits up and, by threes, four merges down.
    assert len(found.scales) <= 4 * 8


@pytest.mark.parametrize("pause", [30 * MINUTE, 5 * HOUR, 2 * DAY])
def test_three_minutes_of_load_after_a_pause_are_answered_within_the_cooldown(pause: int) -> None:
    begin, length = HOUR + pause, HOUR + pause + 10 * MINUTE

    def rate(at: int) -> float:
        loaded = 2000.0 if begin < at <= begin + 3 * MINUTE else 0.0
        return 50.0 if at <= HOUR else loaded

    found = played(policy(), appends(rate, 5 * SECOND, length), length, name="load after a pause")
    assert [one.action for one in found.scales] == ["split"]
    assert BEGIN + begin < found.scales[0].clock <= BEGIN + length


def test_a_load_that_moves_through_the_key_space_is_followed() -> None:
    places = [Spread.even(KeyRange(i / 100, i / 100 + 0.1)) for i in range(90)]
    found = played(
        policy(),
        appends(1000.0, MINUTE, 3 * DAY, lambda at: places[(at - 1) * 90 // (3 * DAY)]),
        3 * DAY, name="1,000/s within a tenth of the keys, which moves through all in three days",
    )  # fmt: skip
    later = [peak for peak in found.peaks if peak.clock > BEGIN + 2 * HOUR]
    assert max(peak.segments for peak in later) <= 40  # what it left is merged again
    within = sum(peak.rate <= 200 for peak in later) / len(later)
    print(f"largest rate within twice the target in {within:.0%} of the runs")
    assert within > 0.9
    assert tiles(ranges(found))


@pytest.mark.parametrize("writer", OFTEN[:2])
def test_day_and_night_are_followed_once_a_day(writer: str) -> None:
    every, _ = WRITERS[writer]
    found = played(
        policy(), appends(daily(20.0, 1000.0), every, 6 * DAY), 6 * DAY, name=f"days, each {writer}"
    )
    per_day = [
        sum(BEGIN + d * DAY < one.clock <= BEGIN + (d + 1) * DAY for one in found.scales)
        for d in range(6)
    ]
    print(per_day)
    assert max(per_day) <= 12
    directions = [one.action for one in found.scales]
    turns = sum(a != b for a, b in pairwise(directions))
    assert turns <= 2 * 6  # up in the morning, down in the evening


def test_a_key_that_is_everything_is_named_and_never_split() -> None:
    found = played(
        policy(), appends(1000.0, MINUTE, DAY, Spread([Load(0.3, 1, "all")])), DAY, name="one key"
    )
    assert found.scales == []
    assert [(name, key.share) for name, (_, key) in found.hot_keys.items()] == [("all", 1.0)]
    assert found.last is not None
    assert found.last.rule == "one_key"


def test_a_hot_key_is_isolated_and_what_is_around_it_is_split() -> None:
    loads = [Load(i / 1000, 1, f"key-{i}") for i in range(1000)] + [Load(0.33335, 3000, "hot")]
    found = played(
        policy(), appends(1000.0, MINUTE, DAY, Spread(loads)), DAY, name="a key of 3/4, and others"
    )
    assert set(found.hot_keys) == {"hot"}
    alone = [r for r in ranges(found) if r.low <= 0.33335 < r.high]
    [hot] = alone
    assert sum(hot.low <= one.position < hot.high for one in loads) == 1
    others = [r for r in ranges(found) if r != hot]
    assert max(Spread(loads).share(*r) * 1000 for r in others) <= 100
    assert changed_after(found, 6 * HOUR) == []


@pytest.mark.parametrize("keys", [2_000, pytest.param(20_000, marks=pytest.mark.release)])
def test_splits_by_the_data_carry_more_equal_loads_than_equal_ranges(keys: int) -> None:
    spread = zipf(1.1, keys)
    found = played(
        policy(target_rate=60), appends(1000.0, MINUTE, DAY // 2, spread), DAY // 2,
        name=f"Zipf(1.1), {keys:,} keys",
    )  # fmt: skip
    hot = {key.position for _, key in found.hot_keys.values()}

    def largest(tiling: list[KeyRange]) -> tuple[float, float]:
        """The largest rate, with hot keys and without."""
        all_ = [1000 * spread.share(*r) for r in tiling]
        rest = [
            rate - sum(1000 * spread.share(p, p + 1e-15) for p in hot if r.low <= p < r.high)
            for r, rate in zip(tiling, all_, strict=True)
        ]
        return max(all_), max(rest)

    by_data, by_range = largest(ranges(found)), largest(even_split(len(found.active)))
    print(
        f"{len(found.active)} segments, largest rate {by_data[0]:.0f} beside {by_range[0]:.0f}; "
        f"without hot keys {by_data[1]:.0f} beside {by_range[1]:.0f}; hot: {list(found.hot_keys)}"
    )
    assert by_data[0] <= by_range[0]
    assert by_data[1] <= 0.8 * by_range[1]
    assert by_data[1] <= 60


def test_an_append_to_many_segments_looks_only_where_each_part_lies() -> None:
    asked: list[KeyRange] = []

    class Counted(Spread):
        def share(self, low: float, high: float) -> float:
            asked.append(KeyRange(low, high))
            return super().share(low, high)

        def weighed(self, keys: KeyRange, amount: float) -> list[Load]:
            asked.append(keys)
            return super().weighed(keys, amount)

    tiling = even_split(1000)
    parts = tuple((Counted([Load(keys.low, 1), Load(keys.high - 1e-9, 1)]), 2e6) for keys in tiling)
    simulation = Simulation(policy(min_segments=1000), BEGIN, tiling)
    simulation.play((Append(BEGIN + i * HOUR, parts) for i in range(1, 6)), BEGIN + 5 * HOUR)
    [scale] = simulation.scales
    assert (len(scale.sealed), len(scale.created)) == (1000, 2000)
    assert len(asked) <= 2 * len(tiling)
