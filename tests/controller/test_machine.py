"""Random histories of a stream against a model that keeps every event."""

import json
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.controller.model import GRID, Cut, Event, Model, Written, as_json
from tests.controller.support import FIELDS, Lane, unique
from weir.controller.commit import Staged, StagedFile, commit
from weir.controller.scale import scale
from weir.controller.transactions import Attempt, abort
from weir.errors import Conflict, Fenced, InvalidInput
from weir.key_space import KeyRange, tiles
from weir.segment import segment_name
from weir.storage import Database

SEGMENTS = 2
seeds = st.integers(0, 2**32)


@dataclass
class Open:
    """A transaction that is open, and what its writer would write."""

    batch: str
    attempt: Attempt
    epoch: int


class StreamMachine(RuleBasedStateMachine):
    """Scales, commits (some of them begun long before), rolls, truncations, and mistakes."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.lane = Lane.made(database, segments=SEGMENTS)
        self.model = Model(SEGMENTS)
        self.open: list[Open] = []
        self.zombies: list[Open] = []
        self.committed: list[Staged] = []
        self.orders = 0
        self.random = Random(0)

    # Appends.

    def begin(self, batch: str) -> Open:
        return Open(batch, self.lane.opened(batch), len(self.model.epochs) - 1)

    def written(self, one: Open, random: Random) -> tuple[Staged, Written]:
        """A few events, routed to the segments that the attempt was given."""
        weight = random.randint(1, 9)
        cells = [random.randrange(GRID) for _ in range(random.randint(0, 6))]
        files: list[StagedFile] = []
        placed: Written = []
        first = self.orders
        self.orders += len(cells)
        for segment in one.attempt.segments:
            mine = [
                Event(cell, first + i, weight)
                for i, cell in enumerate(cells)
                if segment.key_low <= cell / GRID < segment.key_high
            ]
            task = 0
            while mine:
                taken = tuple(mine[: random.randint(1, len(mine))])
                mine = mine[len(taken) :]
                path = f"{one.attempt.folder}_weir_segment={segment.segment_id}/{task}"
                task += 1
                placed.append((segment.segment_id, taken, path))
                files.append(
                    StagedFile(
                        segment.segment_id, path, len(taken), weight * len(taken),
                        taken[0].order, taken[-1].order,
                    )
                )  # fmt: skip
        random.shuffle(files)
        return Staged(one.attempt, tuple(files), FIELDS), placed

    @precondition(lambda self: len(self.open) < 6)
    @rule()
    def begin_a_transaction(self) -> None:
        self.open.append(self.begin(unique("batch")))

    @precondition(lambda self: self.open)
    @rule(seed=seeds)
    def take_a_transaction_over(self, seed: int) -> None:
        i = Random(seed).randrange(len(self.open))
        self.zombies.append(self.open[i])
        self.open[i] = self.begin(self.open[i].batch)

    @rule(seed=seeds)
    def append(self, seed: int) -> None:
        self.commit_all([self.begin(unique("batch"))], Random(seed))

    @precondition(lambda self: self.open)
    @rule(seed=seeds, count=st.integers(1, 3))
    def commit_what_began_before(self, seed: int, count: int) -> None:
        random = Random(seed)
        chosen = random.sample(self.open, min(count, len(self.open)))
        self.open = [one for one in self.open if one not in chosen]
        self.commit_all(chosen, random)

    def commit_all(self, chosen: list[Open], random: Random) -> None:
        everything = [self.written(one, random) for one in chosen]
        done = commit(self.lane.database, *[staged for staged, _ in everything])
        rolling = None
        rolled = []
        # The order of a commit is that of the call, whatever the writers did before.
        for one, (_, placed) in zip(chosen, everything, strict=True):
            rolling = self.model.commit(one.epoch, placed, rolling=rolling)
            rolled.append(rolling is not None)
        if rolling is not None:
            self.model.end_roll()
        assert [one.rolled for one in done] == rolled
        assert [one.clock for one in done] == sorted({one.clock for one in done})
        self.committed.append(everything[-1][0])

    @precondition(lambda self: self.committed)
    @rule()
    def commit_again(self) -> None:
        [done] = commit(self.lane.database, self.committed[-1])
        assert done.repeated

    @precondition(lambda self: self.zombies)
    @rule(seed=seeds)
    def a_zombie_commits(self, seed: int) -> None:
        one = self.zombies.pop()
        staged, _ = self.written(one, Random(seed))
        with pytest.raises(Fenced):
            commit(self.lane.database, staged)

    @precondition(lambda self: self.open)
    @rule()
    def abort_a_transaction(self) -> None:
        one = self.open.pop()
        assert abort(self.lane.database, one.attempt)
        self.zombies.append(one)

    # Scales.

    def blocks(self, random: Random) -> tuple[list[int], list[tuple[int, int]]]:
        """Some active segments, as runs of neighbours, and the ranges of those runs."""
        in_order = sorted(self.model.epochs[-1], key=lambda s: self.model.segments[s].low)
        first = random.randrange(len(in_order))
        chosen = in_order[first : first + random.randint(1, 3)]
        if random.random() < 0.2:
            chosen = sorted({*chosen, random.choice(in_order)})
        segments = sorted((self.model.segments[s] for s in chosen), key=lambda s: s.low)
        runs: list[tuple[int, int]] = []
        for segment in segments:
            if runs and runs[-1][1] == segment.low:
                runs[-1] = (runs[-1][0], segment.high)
            else:
                runs.append((segment.low, segment.high))
        return chosen, runs

    @rule(seed=seeds)
    def scale(self, seed: int) -> None:
        random = Random(seed)
        chosen, runs = self.blocks(random)
        inside = [cell for low, high in runs for cell in range(low + 1, high)]
        cuts = sorted(random.sample(inside, min(len(inside), random.randint(0, 3))))
        if len(self.model.epochs[-1]) > 8:
            cuts = []
        if not cuts and len(runs) > 1:
            return  # equal parts of what does not touch have no meaning
        ranges = []
        for low, high in runs:
            edges = [low, *[c for c in cuts if low < c < high], high]
            ranges += list(pairwise(edges))
        done = scale(
            self.lane.database,
            self.lane.name,
            seal=[self.any_name_of(s, random) for s in chosen],
            boundaries=[c / GRID for c in cuts],
            parts=1,
            request_id=unique("scale"),
        )
        self.model.scale(chosen, ranges)
        assert done["epoch"] == len(self.model.epochs) - 1
        new = self.model.epochs[-1][len(self.model.epochs[-1]) - len(ranges) :]
        assert [name for name, _, _ in done["created"]] == [segment_name(s) for s in new]

    def any_name_of(self, s: int, random: Random) -> str:
        """After a roll a segment may still be called by the id of an earlier copy."""
        same = [t for t in self.model.segments.values() if t.number == s % (1 << 32)]
        return random.choice(same).name

    @rule(seed=seeds)
    def scale_what_is_not_active(self, seed: int) -> None:
        random = Random(seed)
        numbers = {s % (1 << 32) for s in self.model.epochs[-1]}
        stale = [s for s in self.model.segments.values() if s.number not in numbers]
        if stale:
            with pytest.raises(Conflict, match="is not active"):
                self.lane.scale(random.choice(stale).name, parts=random.randint(1, 3))
            with pytest.raises(Conflict, match="is not active"):
                self.lane.scale(random.choice(stale).name, boundaries=[0.5])

    @rule(seed=seeds)
    def scale_at_a_boundary_outside(self, seed: int) -> None:
        segment = self.model.segments[Random(seed).choice(self.model.epochs[-1])]
        with pytest.raises(InvalidInput, match="boundary"):
            self.lane.scale(segment.name, boundaries=[segment.high / GRID])

    # Truncation.

    @rule(seed=seeds)
    def truncate(self, seed: int) -> None:
        cut = self.model.frontier(Random(seed), self.model.head)
        before, after = self.model.size_till(self.model.head), self.model.size_till(cut)
        dead = len(self.model.dead(cut)) - len(self.model.dead(self.model.head))
        done = self.lane.truncate(json.dumps(as_json(cut)))
        assert (done["events"], done["bytes"], done["files"]) == (
            after[0] - before[0], after[1] - before[1], dead,
        )  # fmt: skip
        self.model.head = cut

    @rule(seed=seeds)
    def truncate_behind_the_head(self, seed: int) -> None:
        start: Cut = dict.fromkeys(self.model.epochs[0], 0)
        cut = self.model.frontier(Random(seed), start)
        if not self.model.behind(self.model.head, cut):
            with pytest.raises(InvalidInput, match="the head only moves forward"):
                self.lane.truncate(json.dumps(as_json(cut)))

    @rule(seed=seeds)
    def truncate_at_no_position(self, seed: int) -> None:
        random = Random(seed)
        cut = self.model.frontier(random, self.model.head)
        s = random.choice(sorted(cut))
        if cut[s] is None or random.random() < 0.3:
            del cut[s]
        else:
            cut[s] = len(self.model.segments[s].events) + 1
        with pytest.raises(InvalidInput):
            self.lane.truncate(json.dumps(as_json(cut)))

    # What must hold after every step.

    @invariant()
    def segments_and_epochs_are_those_of_the_model(self) -> None:
        lane, model = self.lane, self.model
        found = lane.rows(
            """SELECT s.segment_id, key_low, key_high, sealed_epoch,
                coalesce(tail_offset, s.events) AS events, coalesce(tail_bytes, s.bytes) AS bytes
            FROM segment s LEFT JOIN segment_tail t USING (stream_id, segment_id)
            WHERE stream_id = :s ORDER BY segment_id"""
        )
        assert [tuple(row) for row in found] == [
            (s.segment_id, s.low / GRID, s.high / GRID, s.sealed, len(s.events),
             sum(event.bytes for event in s.events))
            for _, s in sorted(model.segments.items())
        ]  # fmt: skip
        epochs = lane.epochs()
        assert [(e.epoch, e.reference_epoch) for e in epochs] == list(enumerate(model.references))
        times = [e.created_at for e in epochs]
        assert times == sorted(set(times))
        some = self.random.sample(range(len(epochs)), min(3, len(epochs)))
        for epoch in {0, len(epochs) - 1, *some}:
            active = lane.rows("SELECT * FROM active_segments_at(:s, :e)", e=epoch)
            assert {row.segment_id for row in active} == set(model.epochs[epoch])
            assert tiles(KeyRange(row.key_low, row.key_high) for row in active)
        for epoch, at in enumerate(times):
            assert lane.value("SELECT epoch_at(:s, :at)", at=at) == epoch
        assert lane.head() == as_json(model.head)
        assert lane.tail() == as_json(model.tail())

    @invariant()
    def files_hold_exactly_what_lies_from_the_head_to_the_tail(self) -> None:
        lane, model = self.lane, self.model
        dead = model.dead(model.head)
        assert {(f.segment_id, f.start_offset, f.events, f.path) for f in lane.files()} == {
            (f.segment_id, f.start, len(f.events), f.path)
            for f in model.files
            if f.path not in dead
        }
        garbage = lane.rows(
            "SELECT path FROM garbage WHERE stream_id = :s AND reason = 'truncated'"
        )
        assert {row.path for row in garbage} == dead

    @invariant()
    def the_time_index_has_every_commit_at_its_place(self) -> None:
        entries = self.lane.rows(
            """SELECT i.*, e.created_at FROM time_index i
            JOIN segment s USING (stream_id, segment_id)
            JOIN epoch e ON e.stream_id = i.stream_id AND e.epoch = s.creation_epoch
            WHERE i.stream_id = :s ORDER BY segment_id, start_offset"""
        )
        ends: dict[int, tuple[int, int, int]] = {}
        for i in entries:
            assert ends.get(i.segment_id, (0, 0, i.created_at))[:2] == (
                i.start_offset,
                i.start_byte,
            )
            assert i.clock > ends.get(i.segment_id, (0, 0, i.created_at))[2]
            ends[i.segment_id] = (i.start_offset + i.events, i.start_byte + i.bytes, i.clock)
        assert {s: end[0] for s, end in ends.items()} == {
            s: len(segment.events) for s, segment in self.model.segments.items() if segment.events
        }

    @invariant()
    def every_key_keeps_its_order(self) -> None:
        orders = {cell: [e.order for e in self.model.chain(cell)] for cell in range(GRID)}
        assert orders == {cell: sorted(found) for cell, found in orders.items()}

    @invariant()
    def sizes_before_any_cut_are_those_of_the_model(self) -> None:
        for start in (dict.fromkeys(self.model.epochs[0], 0), self.model.head):
            cut = self.model.frontier(self.random, start)
            [size] = self.lane.rows(
                "SELECT events, bytes FROM size_till(:s, CAST(:cut AS jsonb))",
                cut=json.dumps(as_json(cut)),
            )
            assert tuple(size) == self.model.size_till(cut)


def check(database: Database, examples: int, steps: int) -> None:
    run_state_machine_as_test(
        lambda: StreamMachine(database),
        settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None),
    )


def test_random_histories_are_those_of_the_model(shared_database: Database) -> None:
    check(shared_database, examples=40, steps=30)


@pytest.mark.soak
def test_many_long_random_histories_are_those_of_the_model(shared_database: Database) -> None:
    check(shared_database, examples=400, steps=80)
