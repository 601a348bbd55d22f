"""What retention decides, as a model of the SQL function `decide_retention`: values, without I/O.

The rules are semantics 11.5 and 11.6; docs/retention.md has them in one table.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import lock_streams
from weir.database.connection import Database
from weir.model.amounts import say_age, say_size
from weir.model.names import StreamName
from weir.model.retention_policy import Policy
from weir.model.stream_cut import Order, StreamCut, at_or_before, compare, join, meet


class Size(NamedTuple):
    """The events and bytes before a cut, counted from the beginning of the stream."""

    events: int
    bytes: int


class Record(NamedTuple):
    """A recorded tail. `recorded_at`: seconds of the epoch; `bytes`: the size before the cut."""

    recorded_at: float
    cut: StreamCut
    bytes: int


class Limits(NamedTuple):
    """The recorded cuts that stand for the limits (semantics 11.4); None: there is none.

    `min_age`, `min_bytes`: the newest record that leaves the minimum. `past_max_age`: the newest
    record older than the maximum. `within_max_age`, `within_max_bytes`: where a maximum truncates,
    the oldest record that leaves no more than it.
    """

    min_age: Record | None = None
    min_bytes: Record | None = None
    past_max_age: Record | None = None
    within_max_age: Record | None = None
    within_max_bytes: Record | None = None


@dataclass(frozen=True)
class Decision:
    """What to do with a stream: the cut to truncate at (None: nothing), the rule, and the reason.

    `held_by`: the subscribers that prevent a further truncation (empty if a minimum would prevent
    it anyway). `truncated_past`: those that have not released everything that a maximum truncates.
    `timed_out`: those that had timed out.
    """

    cut: StreamCut | None
    rule: str
    reason: str
    bound: StreamCut | None = None
    held_by: tuple[str, ...] = ()
    truncated_past: tuple[str, ...] = ()
    timed_out: tuple[str, ...] = ()
    frees: Size = Size(0, 0)


@dataclass(frozen=True)
class Situation:
    """What a decision depends on.

    `subscribers`: what each has released; a cut behind the head counts as the head. `timed_out`:
    the same for subscribers that hold nothing back any more. `size_before`: of a cut.
    """

    policy: Policy
    head: StreamCut
    tail: Size
    subscribers: Mapping[str, StreamCut]
    timed_out: Mapping[str, StreamCut]
    limits: Limits
    size_before: Callable[[StreamCut], Size]

    def kept(self, cut: StreamCut) -> int:
        """Return the bytes that are left if the stream is truncated at a cut."""
        return self.tail.bytes - self.size_before(cut).bytes

    def leaves_minimum(self, cut: StreamCut) -> bool:
        """Return whether a cut leaves the minimum size.

        A recorded cut may no longer do so, because somebody has truncated elsewhere by hand.
        """
        return self.policy.min_bytes is None or self.kept(cut) >= self.policy.min_bytes


class _Choice(NamedTuple):
    cut: StreamCut | None
    rule: str
    reason: str


def decide(s: Situation) -> Decision:
    """Return the decision for one stream, by the tables of semantics 11.5 and 11.6."""
    released = {name: join(cut, s.head) for name, cut in s.subscribers.items()}
    bound = meet(released.values()) if s.policy.by_consumption and released else None
    held_by = holding(released, bound) if bound else ()
    if bound is None:
        choice = _without_bound(s)
    else:
        choice = _between_limits(s, bound, f"{_all(s)} are past it; {_held(held_by)}")
    if choice.cut is not None and not at_or_before(s.head, choice.cut):
        choice = _Choice(
            None, "behind_head", f"what {choice.rule} chose lies behind the head by now"
        )
    elif choice.cut == s.head:
        choice = _nothing(s, choice, held_by)
    cut, frees = choice.cut, Size(0, 0)
    truncated_past: tuple[str, ...] = ()
    if cut is not None:
        before, after = s.size_before(s.head), s.size_before(cut)
        frees = Size(after.events - before.events, after.bytes - before.bytes)
        if bound is not None:
            behind = [name for name, one in released.items() if not at_or_before(cut, one)]
            truncated_past = tuple(sorted(behind))
    if choice.rule in ("min_age", "min_bytes", "too_little"):
        held_by = ()
    return Decision(*choice, bound, held_by, truncated_past, tuple(sorted(s.timed_out)), frees)


def holding(released: Mapping[str, StreamCut], bound: StreamCut) -> tuple[str, ...]:
    """Return the subscribers without whom the bound would be later.

    Where several share the bound, return those of whom none has released less than another.
    """
    names = sorted(released)
    if len(names) == 1:
        return tuple(names)
    # The bound of the subscribers before each one, and of those after it, computed step by step.
    before = list(accumulate((released[name] for name in names), _meet_of_two))
    after = list(accumulate((released[name] for name in reversed(names)), _meet_of_two))[::-1]
    others = [after[1], *map(_meet_of_two, before, after[2:]), before[-2]]
    if alone := [name for name, rest in zip(names, others, strict=True) if rest != bound]:
        return tuple(alone)
    cuts = set(released.values())
    last = {c for c in cuts if not any(other != c and at_or_before(other, c) for other in cuts)}
    return tuple(name for name in names if released[name] in last)


def _meet_of_two(one: StreamCut, other: StreamCut) -> StreamCut:
    return one if one == other else meet((one, other))


def _held(by: tuple[str, ...]) -> str:
    return f"held by {', '.join(by)}"


def _all(s: Situation) -> str:
    return "all subscribers that have not timed out" if s.timed_out else "all subscribers"


def _nothing(s: Situation, choice: _Choice, held_by: tuple[str, ...]) -> _Choice:
    """Return why nothing is truncated: the chosen cut is already the head."""
    if choice.rule == "consumed":
        reason = f"nothing beyond the head is consumed by {_all(s)}; {_held(held_by)}"
        return _Choice(None, "nothing_consumed", reason)
    if choice.rule == "head":
        return _Choice(None, "too_little", "nothing exceeds the maximum")
    return _Choice(None, "too_little", f"what {choice.rule} allows is truncated already")


def _without_bound(s: Situation) -> _Choice:
    """Choose where no subscriber releases anything: only a maximum truncates."""
    if s.policy.retention == "keep":
        return _Choice(None, "keep", "retention is keep, so the stream keeps everything")
    if s.policy.has_maximum:
        return _below_maximum(s, s.head, _Choice(s.head, "head", ""))
    if s.timed_out:
        who = f"every subscriber has timed out ({', '.join(sorted(s.timed_out))})"
    else:
        who = "no subscriber reads the stream"
    return _Choice(
        None, "no_rule", f"{who}, so nothing counts as consumed, and there is no maximum"
    )


def _between_limits(s: Situation, cut: StreamCut, reason: str) -> _Choice:
    """Choose the subscribers' bound, but no later than the minimum allows and no earlier than the
    maximum demands.
    """
    rule, bound = "consumed", cut
    for limit, record in (("min_age", s.limits.min_age), ("min_bytes", s.limits.min_bytes)):
        least: int | None = getattr(s.policy, limit)
        if least is None:
            continue
        if limit == "min_bytes":
            allowed = s.kept(cut) >= least
        else:
            allowed = record is not None and at_or_before(cut, record.cut)
        if allowed:
            continue
        if record is None:
            return _Choice(None, "too_little", _within(s.policy, limit))
        cut, rule = join(meet([cut, record.cut]), s.head), limit
        reason = f"consumed, and {_over(s.policy, limit)}"
    if not s.leaves_minimum(cut):
        return _Choice(None, "too_little", _within(s.policy, "min_bytes"))
    return _below_maximum(s, bound, _Choice(cut, rule, reason))


def _below_maximum(s: Situation, bound: StreamCut, choice: _Choice) -> _Choice:
    """Return `choice`, or a later cut that the maximum demands and the minimum allows.

    `bound`: where the stream would begin if only its subscribers kept events. What exceeds the
    maximum only because a minimum keeps it is not a delay of any subscriber, so no subscriber loses
    events by it.
    """
    demands: list[tuple[Record, str]] = []
    past, within = s.limits.past_max_age, s.limits.within_max_age
    if s.policy.max_age is not None and past is not None:
        order = compare(bound, past.cut)
        if order is Order.OVERLAPS:
            demands.append((past, "max_age"))
        elif order is Order.BEFORE and within is not None:
            demands.append((within, "max_age"))
    within = s.limits.within_max_bytes
    if s.policy.max_bytes is not None and within is not None:
        kept = s.kept(bound)
        # A stream exactly as large as the maximum does not exceed it (semantics 11.5). With `>=`,
        # the result would depend on whether the record at the head was pruned.
        if kept > s.policy.max_bytes and s.tail.bytes - within.bytes < kept:
            demands.append((within, "max_bytes"))
    if not demands:
        return choice
    record, limit = max(demands, key=lambda one: one[0].recorded_at)
    if s.policy.min_age is not None or s.policy.min_bytes is not None:
        minimum, _ = _minimum_record(s)
        if minimum is None:
            return choice
        record = min(record, minimum, key=lambda one: one.recorded_at)
    demanded = join(record.cut, s.head)
    assert choice.cut is not None
    if at_or_before(record.cut, choice.cut) or not s.leaves_minimum(demanded):
        return choice
    return _Choice(demanded, limit, f"it is {_over(s.policy, limit)}")


def _minimum_record(s: Situation) -> tuple[Record | None, str]:
    """Return the newest record that leaves every minimum, and the minimum that decides."""
    found: list[tuple[Record, str]] = []
    for limit, record in (("min_age", s.limits.min_age), ("min_bytes", s.limits.min_bytes)):
        if getattr(s.policy, limit) is None:
            continue
        if record is None:
            return None, limit
        found.append((record, limit))
    return min(found, key=lambda one: one[0].recorded_at)


def _within(policy: Policy, limit: str) -> str:
    return f"nothing is {_over(policy, limit)}"


def _over(policy: Policy, limit: str) -> str:
    which = "minimum" if limit.startswith("min") else "maximum"
    if limit.endswith("age"):
        return f"older than the {which} age, {_say(policy, limit)}"
    return f"beyond the {which} size, {_say(policy, limit)}"


def _say(policy: Policy, limit: str) -> str:
    amount: int = getattr(policy, limit)
    return say_age(amount) if limit.endswith("age") else say_size(amount)


def situation(database: Database, name: StreamName) -> Situation:
    """What a decision about a stream depends on now."""

    def read(connection: Connection) -> Situation:
        [stream] = lock_streams(connection, names=[name])
        row = connection.execute(
            text("SELECT * FROM retention_inputs(:s)"), {"s": stream.stream_id}
        ).one()
        records = list(row.limits.values())
        head, *cuts = load_cuts(
            connection, stream.stream_id, stream.head, *[one["cut"] for one in row.subscribers],
            *[one["cut"] for one in records],
        )  # fmt: skip
        subscribers: dict[bool, dict[str, StreamCut]] = {False: {}, True: {}}
        for one, cut in zip(row.subscribers, cuts, strict=False):
            subscribers[one["timed_out"]][one["name"]] = cut
        found = {
            which: Record(one["recorded_at"], cut, one["bytes"])
            for which, one, cut in zip(
                row.limits, records, cuts[len(row.subscribers) :], strict=True
            )
        }

        def size_before(cut: StreamCut) -> Size:
            return Size(*database.transaction(
                lambda c: c.execute(
                    text("SELECT * FROM size_till(:s, CAST(:cut AS jsonb))"),
                    {"s": stream.stream_id, "cut": json.dumps(cut.to_json())},
                ).one()
            ))  # fmt: skip

        return Situation(
            stream.configuration.retention_policy,
            head,
            Size(row.tail_events, row.tail_bytes),
            subscribers[False],
            subscribers[True],
            Limits(**found),
            size_before,
        )

    return database.transaction(read)
