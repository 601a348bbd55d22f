"""Random histories of a stream against a model that keeps every event."""

import json
from random import Random
from typing import cast

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.chance import cases
from tests.controller.driver import Driver
from tests.controller.model import GRID, Cut, Model, as_json
from tests.raises import raises
from tests.world.streams import Lane
from weir.compaction.pack import pack
from weir.controller.commit import commit
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.errors import Fenced, InvalidInput
from weir.model.key_space import KeyRange, tiles
from weir.model.segment import segment_name

seeds = st.integers(0, 2**32)


active = precondition(lambda self: not self.driver.sealed)


class StreamMachine(RuleBasedStateMachine):
    """Scales, commits (some of them begun long before), rolls, truncations, and mistakes."""

    def __init__(self, database: Database) -> None:
        super().__init__()
        self.driver = Driver(database, segments=2)
        self.random = Random(0)

    @property
    def lane(self) -> Lane:
        return self.driver.lane

    @property
    def model(self) -> Model:
        return self.driver.model

    @precondition(lambda self: len(self.driver.open) < 6 and not self.driver.sealed)
    @rule()
    def begin_a_transaction(self) -> None:
        self.driver.open.append(self.driver.begin())

    @precondition(lambda self: self.driver.open)
    @rule(seed=seeds)
    def take_a_transaction_over(self, seed: int) -> None:
        i = Random(seed).randrange(len(self.driver.open))
        self.driver.zombies.append(self.driver.open[i])
        self.driver.open[i] = self.driver.begin(self.driver.open[i].batch)

    @precondition(lambda self: self.driver.open)
    @rule(seed=seeds, count=st.integers(1, 3))
    def say_that_some_are_ready(self, seed: int, count: int) -> None:
        self.driver.announce_some(Random(seed), count)

    @precondition(lambda self: self.driver.waiting)
    @rule(seed=seeds)
    def commit_what_waits(self, seed: int) -> None:
        self.driver.commit_what_waits(Random(seed))

    @precondition(lambda self: self.driver.waiting)
    @rule()
    def take_what_waits_over(self) -> None:
        one, _, _ = self.driver.waiting.pop()
        self.driver.zombies.append(one)
        self.driver.open.append(self.driver.begin(one.batch))

    @active
    @rule(seed=seeds)
    def append(self, seed: int) -> None:
        self.driver.append(Random(seed))

    @precondition(lambda self: self.driver.open)
    @rule(seed=seeds, count=st.integers(1, 3))
    def commit_what_began_before(self, seed: int, count: int) -> None:
        self.driver.commit_some(Random(seed), count)

    @precondition(lambda self: self.driver.committed)
    @rule()
    def commit_again(self) -> None:
        [done] = commit(self.lane.database, self.driver.committed[-1])
        assert done.repeated

    @precondition(lambda self: self.driver.zombies)
    @rule(seed=seeds)
    def a_zombie_commits(self, seed: int) -> None:
        staged, _ = self.driver.written(self.driver.zombies.pop(), Random(seed))
        with pytest.raises(Fenced):
            commit(self.lane.database, staged)

    @precondition(lambda self: self.driver.open)
    @rule()
    def abort_a_transaction(self) -> None:
        one = self.driver.open.pop()
        assert abort(self.lane.database, one.attempt)
        self.driver.zombies.append(one)

    @active
    @rule(seed=seeds)
    def scale(self, seed: int) -> None:
        self.driver.scale(Random(seed))

    @active
    @rule(seed=seeds)
    def scale_what_is_not_active(self, seed: int) -> None:
        random = Random(seed)
        numbers = {s % (1 << 32) for s in self.model.epochs[-1]}
        stale = [s for s in self.model.segments.values() if s.number not in numbers]
        if stale:
            with raises("segment_not_active"):
                self.lane.scale(random.choice(stale).name, parts=random.randint(1, 3))
            with raises("segment_not_active"):
                self.lane.scale(random.choice(stale).name, ranges=[KeyRange(0.0, 1.0)])

    @active
    @rule(seed=seeds)
    def truncate(self, seed: int) -> None:
        self.driver.truncate(Random(seed))

    @active
    @rule(seed=seeds)
    def truncate_behind_the_head(self, seed: int) -> None:
        start: Cut = dict.fromkeys(self.model.epochs[0], 0)
        cut = self.model.frontier(Random(seed), start)
        if not self.model.behind(self.model.head, cut):
            with raises("position_invalid offset"):
                self.lane.truncate(json.dumps(as_json(cut)))

    @active
    @rule(seed=seeds)
    def truncate_at_no_position(self, seed: int) -> None:
        random = Random(seed)
        cut = self.model.frontier(random, self.model.head)
        s = random.choice(sorted(t for t, offset in cut.items() if offset is not None))
        # Without one whose keys a future segment has as well, it says that that one is passed.
        rest: set[int] = set().union(*(self.model.segments[t].cells for t in cut if t != s))
        if self.model.segments[s].cells - rest and random.random() < 0.5:
            del cut[s]
        else:
            cut[s] = len(self.model.segments[s].events) + 1
        with pytest.raises(InvalidInput):
            self.lane.truncate(json.dumps(as_json(cut)))

    @active
    @rule(seed=seeds)
    def update(self, seed: int) -> None:
        self.driver.update(Random(seed))

    @rule(most=st.integers(4, 9))
    def pack_commits(self, most: int) -> None:
        assert not [one for one in pack(self.lane.database, 0.0, 1e9, most) if "error" in one]

    @precondition(lambda self: not self.driver.sealed and len(self.model.epochs) > 4)
    @rule()
    def seal(self) -> None:
        self.driver.seal()

    @precondition(lambda self: self.driver.sealed)
    @rule(seed=seeds)
    def change_what_is_sealed(self, seed: int) -> None:
        lane, segment = self.lane, segment_name(self.model.epochs[-1][0])
        for change in (
            lane.begin,
            lambda: lane.scale(segment, parts=2),
            lambda: lane.truncate(json.dumps(as_json(self.model.tail()))),
            lambda: self.driver.update(Random(seed)),
        ):
            with raises("stream_not_active sealed"):
                change()

    @precondition(lambda self: self.driver.sealed)
    @rule(seed=seeds)
    def delete_and_make_anew(self, seed: int) -> None:
        self.driver = self.driver.deleted_and_made_anew(Random(seed))

    @active
    @rule()
    def delete_what_is_not_sealed(self) -> None:
        with raises("stream_not_sealed"):
            self.driver.deleted_and_made_anew(self.random)

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
        splits = [(e.splits, e.merges) for e in epochs]
        assert splits == model.splits_and_merges()
        assert lane.head() == as_json(model.head)
        assert lane.tail() == as_json(model.tail())

    @invariant()
    def files_hold_exactly_what_lies_from_the_head_to_the_tail(self) -> None:
        lane, model = self.lane, self.model
        below = model.files_below(model.head)
        assert {(f.segment_id, f.start_offset, f.events, f.path) for f in lane.files()} == {
            (f.segment_id, f.start, len(f.events), f.path)
            for f in model.files
            if f.path not in below
        }
        garbage = lane.rows(
            "SELECT path FROM garbage WHERE stream_id = :s AND reason = 'truncated'"
        )
        assert {row.path for row in garbage} == below

    @invariant()
    def the_time_index_has_every_commit_at_its_place(self) -> None:
        entries = self.lane.rows(
            """SELECT i.*, e.created_at FROM (
                SELECT stream_id, segment_id, start_offset, events, start_byte, bytes, clock
                FROM time_index
                UNION ALL
                SELECT p.stream_id, p.segment_id, u.start_offset, u.events, u.start_byte, u.bytes,
                    u.clock
                FROM packed_commits p CROSS JOIN LATERAL unpacked(p, 1, p.commits) u) i
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


def check(database: Database, examples: int, steps: int, *, shrink: bool = False) -> None:
    """A failure is made small only by the long tests: that takes minutes."""
    phases = [Phase.explicit, Phase.reuse, Phase.generate, *[Phase.shrink] * shrink]
    run_state_machine_as_test(
        # A function that makes one will do, its documentation says.
        cast(type[RuleBasedStateMachine], lambda: StreamMachine(database)),
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, phases=phases
        ),
    )


@pytest.mark.random
def test_random_histories_are_those_of_the_model(shared_database: Database) -> None:
    check(shared_database, examples=cases(40, least=4), steps=30)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_many_long_random_histories_are_those_of_the_model(shared_database: Database) -> None:
    check(shared_database, examples=300, steps=80, shrink=True)
