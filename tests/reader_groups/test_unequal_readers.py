"""Readers of unequal speed catch up together: a simulation of what they own from batch to batch.

It compares with the best assignment that never changes, by somebody who knew all speeds before.
"""

import heapq
from dataclasses import dataclass, field
from random import Random

import pytest

from tests.chance import cases, random_for
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.model.assignment import assign, relative_rates
from weir.reader_groups.batches.plan import FIRST_PART
from weir.reader_groups.locks import lock_group
from weir.reader_groups.positions import read_rates

PAUSE = 1.0  # seconds after which a reader without a batch looks again


@dataclass
class Simulation:
    """Readers with speeds in events per second, over segments with a backlog of events."""

    loads: dict[int, int]
    speeds: dict[str, float]
    budget: float
    owners: dict[int, str] = field(default_factory=dict)
    held: dict[str, dict[int, float]] = field(default_factory=dict)
    batches: dict[str, list[tuple[float, float]]] = field(default_factory=dict)  # events, seconds

    def run(self, by_rate: bool = True) -> float:
        """The seconds until everything is read."""
        left = {segment: float(load) for segment, load in self.loads.items()}
        self.batches = {reader: [] for reader in self.speeds}
        looks = [(0.0, reader) for reader in sorted(self.speeds)]
        end = 0.0
        while looks:
            now, reader = heapq.heappop(looks)
            for segment, events in self.held.pop(reader, {}).items():
                left[segment] = max(0.0, left[segment] - events)
                end = now
            if max(left.values()) < 0.5:
                continue
            mine = self._share(reader, left, by_rate)
            unread = sum(left[segment] for segment in mine)
            if unread < 0.5:
                heapq.heappush(looks, (now + PAUSE, reader))
                continue
            budget = self.budget
            if not self.batches[reader] and unread > budget:
                budget /= FIRST_PART
            part = min(1.0, budget / unread)  # all its segments up to one clock
            self.held[reader] = {segment: left[segment] * part for segment in mine}
            seconds = unread * part / self.speeds[reader]
            self.batches[reader].append((unread * part, seconds))
            heapq.heappush(looks, (now + seconds, reader))
        return end

    def _share(self, reader: str, left: dict[int, float], by_rate: bool) -> list[int]:
        held = {segment for batch in self.held.values() for segment in batch}
        unread = {segment: round(events) for segment, events in left.items()}
        rates = relative_rates(self._rates()) if by_rate else {}
        wanted = assign(unread, self.owners, sorted(self.speeds), in_batches=held, rates=rates)
        for segment, owner in wanted.items():
            if self.owners.get(segment) == reader and owner != reader:
                del self.owners[segment]
            elif owner == reader:
                self.owners.setdefault(segment, reader)
        return [s for s, owner in wanted.items() if owner == reader == self.owners.get(s)]

    def _rates(self) -> dict[str, float]:
        """As the database finds them: from the batches that are committed."""
        done = {r: b[:-1] if r in self.held else b for r, b in self.batches.items()}
        large = {r: [x for x in b if x[0] >= max(b)[0] / 2] for r, b in done.items()}
        return {r: sum(e for e, _ in b) / sum(s for _, s in b) for r, b in large.items() if b}

    def busy(self, end: float) -> dict[str, float]:
        """The part of the time that each reader was reading."""
        return {r: sum(s for _, s in found) / end for r, found in self.batches.items()}


def best_static(loads: dict[int, int], speeds: dict[str, float]) -> float:
    """The seconds that the best assignment takes that never changes: greedy from several orders,
    each improved by moving and swapping segments of the reader that ends last."""
    best = float("inf")
    for attempt in range(10):
        random = Random(attempt)
        total, owned = dict.fromkeys(speeds, 0), {reader: set[int]() for reader in speeds}

        def ends(reader: str, more: int = 0, total: dict[str, int] = total) -> float:
            return (total[reader] + more) / speeds[reader]

        for segment in sorted(loads, key=lambda s: -loads[s] * random.uniform(0.8, 1.2)):
            reader = min(speeds, key=lambda r: ends(r, loads[segment]))
            owned[reader].add(segment)
            total[reader] += loads[segment]
        while True:
            last = max(speeds, key=ends)
            found = [
                (segment, other, back)
                for segment in owned[last]
                for other in speeds.keys() - {last}
                for back in [None, *owned[other]]
                for gain in [loads[segment] - (loads[back] if back is not None else 0)]
                if gain > 0 and ends(other, gain) < ends(last)
            ]
            if not found:
                break
            segment, other, back = found[0]
            for given, source, target in ((segment, last, other), (back, other, last)):
                if given is not None:
                    owned[source].remove(given)
                    owned[target].add(given)
                    total[source] -= loads[given]
                    total[target] += loads[given]
        best = min(best, max(map(ends, speeds)))
    return best


@pytest.mark.random
def test_readers_of_unequal_speed_catch_up_almost_as_fast_as_if_speeds_were_known() -> None:
    ratios = []
    for case in range(cases(200, least=25)):
        random = random_for(case)
        speeds = {
            name: random.choice([1e3, 2e3, 4e3, 8e3]) for name in "abcd"[: random.randint(2, 4)]
        }
        skew = random.choice([0, 0.5, 1.1])
        segments = len(speeds) * random.choice([1, 2, 4, 8])
        loads = {
            i: round(1e6 * random.uniform(0.5, 1.5) / (i + 1) ** skew) for i in range(segments)
        }
        simulation = Simulation(loads, speeds, sum(loads.values()) / random.choice([50, 200]))
        end = simulation.run()
        ratios.append(end / best_static(loads, speeds))
        if segments >= 4 * len(speeds):
            assert min(simulation.busy(end).values()) > 0.3, "one starves"
    average = sum(ratios) / len(ratios)
    print(f"longest {max(ratios):.3f}, on average {average:.3f} times the best")
    assert average <= 1.03
    # One case in thousands takes 1.13: one reader owned the two largest segments until late.
    assert max(ratios) <= 1.25


def test_without_rates_the_slowest_reader_would_be_waited_for() -> None:
    loads = {i: 1_000_000 // (i + 1) for i in range(12)}
    speeds = {"a": 1e3, "b": 8e3}
    budget = sum(loads.values()) / 100
    ends = [Simulation(loads, speeds, budget).run(by_rate) for by_rate in (True, False)]
    assert ends[0] < 1.1 * best_static(loads, speeds) < 0.5 * ends[1]


def test_rates_are_compared_in_steps_and_not_beyond_a_factor_of_16() -> None:
    assert relative_rates({"a": 100.0, "b": 110.0}) == {"a": 1, "b": 1}
    assert relative_rates({"a": 100.0, "b": 205.0}) == {"a": 1, "b": 2}
    assert relative_rates({"a": 1.0, "b": 1e9, "c": 0.0}) == {"a": 1, "b": 16}
    assert relative_rates({}) == {}


def test_a_reader_whose_rate_is_not_known_counts_as_the_average() -> None:
    loads = dict.fromkeys(range(12), 10)
    owners = assign(loads, {}, ["a", "b", "new"], rates={"a": 1.0, "b": 3.0})
    assert [list(owners.values()).count(name) for name in ("a", "b", "new")] == [2, 6, 4]


def test_the_rate_of_a_reader_is_that_of_its_large_batches(lane: Lane) -> None:
    group = Group.made(lane)
    reader = group.reader()
    for events in (100, 3, 60):
        lane.append({"0.0": events})
        reader.commit(reader.must_open())
    run(
        lane.database,
        """UPDATE reader_batch SET opened_at = committed_at - interval '2 seconds'
        WHERE group_name = :name""",
        name=group.name,
    )
    run(
        lane.database,
        """UPDATE reader_batch b SET opened_at = opened_at - batch_id * interval '1 minute',
            committed_at = committed_at - batch_id * interval '1 minute'
        WHERE group_name = :name""",
        name=group.name,
    )
    rates = lane.database.transaction(lambda c: read_rates(c, lock_group(c, group.name)))
    assert rates == {"reader": pytest.approx(160 / 4)}
    [row] = group.rows("SELECT read_rate FROM weir.readers WHERE reader_group = :n", n=group.name)
    assert row.read_rate == rates["reader"]
