"""The decision of retention, on streams of any shape, against a model that knows only events."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import permutations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import cases
from tests.model.test_stream_cut import Remaining, Stream, advance, cuts, seeds, streams
from tests.retention.decision import Decision, Limits, Record, Situation, Size, decide
from weir.model.retention_policy import Policy
from weir.model.stream_cut import StreamCut, at_or_before

NAMES = ["a", "b", "c", "d"]
NOTHING = Policy()


@dataclass
class World:
    """What is left of a stream at its head, at its subscribers' cuts and at its records."""

    stream: Stream
    policy: Policy
    head: Remaining
    released: dict[str, Remaining]
    records: list[tuple[int, Remaining]]
    now: int

    def size(self, left: Remaining) -> int:
        """Events passed, each of ten bytes, of which a cut of this model gives one."""
        return sum(i < self.stream.sizes[s] for s, i in self.stream.everything() - left)

    @property
    def tail(self) -> int:
        return sum(self.stream.sizes.values())

    def chosen(self, wanted: Callable[[int, Remaining], bool], newest: bool) -> Remaining | None:
        found = [left for time, left in self.records if wanted(time, left)]
        return (found[-1] if newest else found[0]) if found else None

    def record(self, left: Remaining | None) -> Record | None:
        if left is None:
            return None
        time = next(t for t, one in self.records if one == left)
        return Record(time, StreamCut(self.stream.listing(left)), self.size(left))

    def limits(self) -> dict[str, Remaining | None]:
        """Semantics 11.4, record by record."""
        p = self.policy
        least_age, least = p.min_age or 0, p.min_bytes or 0

        def age(time: int) -> int:
            return self.now - time

        def kept(left: Remaining) -> int:
            return self.tail - self.size(left)

        found: dict[str, Remaining | None] = dict.fromkeys(Limits._fields)
        if p.min_age is not None:
            found["min_age"] = self.chosen(lambda t, _: age(t) >= least_age, True)
        if p.min_bytes is not None:
            found["min_bytes"] = self.chosen(lambda _, left: kept(left) >= least, True)
        if (most := p.max_age) is not None:
            found["past_max_age"] = self.chosen(lambda t, _: age(t) >= most, True)
            found["within_max_age"] = self.chosen(
                lambda t, _: least_age <= age(t) <= most, False
            ) or self.chosen(lambda t, _: age(t) >= least_age, True)
        if (size := p.max_bytes) is not None:
            found["within_max_bytes"] = self.chosen(
                lambda _, left: least <= kept(left) <= size, False
            ) or self.chosen(lambda _, left: kept(left) >= least, True)
        return found

    def situation(self, order: list[str] | None = None) -> Situation:
        cut = dict(zip(self.released, cuts(self.stream, self.released.values()), strict=True))
        (head,) = cuts(self.stream, [self.head])
        return Situation(
            self.policy, head, Size(self.tail, self.tail),
            {name: cut[name] for name in order or self.released}, {},
            Limits(**{which: self.record(left) for which, left in self.limits().items()}),
            lambda c: Size(*[self.size(self.stream.remaining(c))] * 2),
        )  # fmt: skip

    def decide(self) -> Decision:
        return decide(self.situation())

    def bound(self) -> Remaining | None:
        if not (self.policy.by_consumption and self.released):
            return None
        return frozenset().union(*[left & self.head for left in self.released.values()])

    def leaves_minimum(self, left: Remaining) -> bool:
        return self.tail - self.size(left) >= (self.policy.min_bytes or 0)

    def expected(self) -> Remaining:
        """What is left after the decision: the tables of semantics 11.5 and 11.6 in sets."""
        p, limits, bound = self.policy, self.limits(), self.bound()
        minimums = [
            limits[unit] for unit in ("min_age", "min_bytes") if getattr(p, unit) is not None
        ]
        # Records follow each other, so that the older of two leaves more.
        minimum = None if None in minimums else max(minimums, key=len, default=None)  # type: ignore[arg-type]
        base = unlimited = self.head if bound is None else bound
        if bound is not None:
            if p.min_age is not None:
                if limits["min_age"] is None:
                    return self.head
                base = (base | limits["min_age"]) & self.head
            if p.min_bytes is not None and self.tail - self.size(base) < p.min_bytes:
                if limits["min_bytes"] is None:
                    return self.head
                base = (base | limits["min_bytes"]) & self.head
            if not self.leaves_minimum(base):
                return self.head
        demands: list[Remaining] = []
        past, within = limits["past_max_age"], limits["within_max_age"]
        if past is not None and not unlimited <= past:
            demands.append(within if past <= unlimited and within is not None else past)
        size = limits["within_max_bytes"]
        if p.max_bytes is not None and size is not None:
            kept = self.tail - self.size(unlimited)
            if kept > p.max_bytes and self.tail - self.size(size) < kept:
                demands.append(size)
        if not demands or (minimums and minimum is None):
            return base
        demanded = min(demands, key=len)
        if minimum is not None:
            demanded = max(demanded, minimum, key=len)
        keep = base <= demanded or not self.leaves_minimum(demanded & self.head)
        return base if keep else demanded & self.head


@st.composite
def worlds(draw: st.DrawFn, limited: bool = True) -> World:
    stream, random = draw(streams), Random(draw(seeds))
    records: list[tuple[int, Remaining]] = []
    left = stream.everything()
    for time in range(random.randint(0, 6)):
        left = advance(stream, left, random)
        if not records or records[-1][1] != left:
            records.append((10 * time, left))
    head = advance(stream, stream.everything(), random)
    starts = [stream.everything(), head, *(left for _, left in records)]
    released = {
        name: advance(stream, random.choice(starts), random)
        for name in NAMES[: random.randint(0, 4)]
    }

    def pair(most: int) -> tuple[int | None, int | None]:
        low = random.choice([None, random.randint(1, most)])
        highs = [None, random.randint(low or 1, most + 1), *([low, low, low + 1] if low else [])]
        return low, random.choice(highs)

    ages, sizes = (pair(70), pair(12)) if limited else ((None, None), (None, None))
    policy = Policy("consumed", *ages, *sizes)
    if limited and random.random() < 0.3:  # what may be without subscribers
        policy = replace(policy, retention="age" if ages[1] else "size")
        policy = policy if ages[1] or sizes[1] else NOTHING
    policy.check()
    return World(stream, policy, head, released, records, 50 + random.randint(0, 20))


@settings(max_examples=cases(1000))
@given(worlds())
def test_the_decision_is_that_of_the_tables(world: World) -> None:
    decision, left = world.decide(), world.expected()
    if decision.cut is None:
        assert left == world.head
        assert decision.rule in ("keep", "no_rule", "nothing_consumed", "too_little", "behind_head")
    else:
        assert decision.cut == StreamCut(world.stream.listing(left))
        assert decision.rule in ("consumed", "min_age", "min_bytes", "max_age", "max_bytes")
        assert left < world.head
        freed = world.size(left) - world.size(world.head)
        assert decision.frees == (freed, freed)


@settings(max_examples=cases(500))
@given(worlds())
def test_nothing_unread_goes_unless_a_maximum_says_so_and_nothing_that_a_minimum_keeps(
    world: World,
) -> None:
    decision, limits = world.decide(), world.limits()
    left = world.head if decision.cut is None else world.stream.remaining(decision.cut)
    assert left <= world.head
    unread, bound = left, world.bound()
    if bound is not None and not decision.rule.startswith("max"):
        assert bound <= left
        assert decision.truncated_past == ()
    elif bound is not None:
        unread = bound - left
        assert set(decision.truncated_past) == {
            name for name, one in world.released.items() if not one & world.head <= left
        }
        assert decision.truncated_past or not unread
    for unit in ("min_age", "min_bytes"):
        if getattr(world.policy, unit) is not None and left != world.head:
            kept = limits[unit]
            if unit == "min_bytes":
                # Exact where subscribers decide: no record need leave the minimum.
                assert world.tail - world.size(left) >= (world.policy.min_bytes or 0)
            else:
                assert kept is not None
                assert kept & world.head <= left


@settings(max_examples=cases(300))
@given(worlds(limited=False))
def test_without_limits_the_cut_is_what_all_subscribers_released_and_never_behind_the_head(
    world: World,
) -> None:
    decision, kept = world.decide(), world.bound()
    if kept is None:
        assert (decision.cut, decision.bound, decision.rule) == (None, None, "no_rule")
        return
    assert decision.bound == StreamCut(world.stream.listing(kept))
    if kept == world.head:
        assert (decision.cut, decision.rule) == (None, "nothing_consumed")
    else:
        assert (decision.cut, decision.rule) == (decision.bound, "consumed")
    holding = [
        name
        for name in world.released
        if len(world.released) > 1
        and kept
        != frozenset().union(*[o & world.head for n, o in world.released.items() if n != name])
    ]
    # Where several hold it back together, nobody does alone: then those who have released least.
    released = {name: left & world.head for name, left in world.released.items()}
    last = [n for n, left in released.items() if not any(left < o for o in released.values())]
    assert list(decision.held_by) == (holding or sorted(last))
    assert all(name in decision.reason for name in decision.held_by)


@given(worlds())
def test_nobody_is_said_to_hold_back_what_a_minimum_keeps(world: World) -> None:
    decision = world.decide()
    if decision.rule in ("min_age", "min_bytes", "too_little"):
        assert decision.held_by == ()
    assert (decision.held_by != ()) <= (decision.bound is not None)


@settings(max_examples=cases(100))
@given(worlds())
def test_the_order_of_subscribers_does_not_matter(world: World) -> None:
    orders = [list(order) for order in permutations(world.released)]
    assert len({repr(decide(world.situation(order))) for order in orders}) == 1


@given(worlds())
def test_a_subscriber_that_has_timed_out_is_named_and_holds_nothing(world: World) -> None:
    situation = world.situation()
    late = dict(list(situation.subscribers.items())[:1])
    others = {n: c for n, c in situation.subscribers.items() if n not in late}
    decision = decide(replace(situation, subscribers=others, timed_out=late))
    assert decision.timed_out == tuple(late)
    alone = decide(replace(situation, subscribers=others))
    assert (decision.cut, decision.rule) == (alone.cut, alone.rule)
    if late and "consumed" in decision.rule:
        assert "all subscribers that have not timed out" in decision.reason
    assert decision.cut is None or at_or_before(situation.head, decision.cut)
