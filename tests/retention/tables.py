"""What retention decides, in sets of what is left of a stream: the tables of semantics 11.5 and
11.6, and nothing of SQL. docs/retention.md has them in one table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from tests.retention.model import Event, Events, Left
from tests.world.streams import BYTES_PER_EVENT
from weir.model.retention_policy import Policy


class Record(NamedTuple):
    """A recorded tail, by what was left of the stream behind it."""

    recorded_at: float
    left: Left


@dataclass(frozen=True)
class Situation:
    """What a decision depends on.

    `released`: what each subscriber that has not timed out has left. `limits`: the records that
    stand for the limits (semantics 11.4). `kept`: the bytes of what is left.
    """

    policy: Policy
    head: Left
    released: Mapping[str, Left]
    limits: Mapping[str, Record]
    kept: Callable[[Left], int]

    @property
    def bound(self) -> Left | None:
        """What is left if all goes that all subscribers have released."""
        if not (self.policy.by_consumption and self.released):
            return None
        return frozenset().union(*self.released.values())

    def decide(self) -> tuple[Left, str]:
        """Return what is left after the decision, and its rule."""
        policy, bound, limits = self.policy, self.bound, self.limits
        if policy.retention == "keep":
            return self.head, "keep"
        if bound is None and not policy.has_maximum:
            return self.head, "no_rule"
        left, rule = (self.head, "head") if bound is None else (bound, "consumed")
        unlimited, least = left, policy.min_bytes or 0
        if bound is not None:
            if policy.min_age is not None:
                if "min_age" not in limits:
                    return self.head, "too_little"
                if not limits["min_age"].left <= left:
                    left, rule = (left | limits["min_age"].left) & self.head, "min_age"
            if self.kept(left) < least and "min_bytes" in limits:
                left, rule = (left | limits["min_bytes"].left) & self.head, "min_bytes"
            if self.kept(left) < least:
                return self.head, "too_little"
        minimums = [one for one in ("min_age", "min_bytes") if getattr(policy, one) is not None]
        demands = self._demands(unlimited)
        if demands and all(one in limits for one in minimums):
            record, which = max(demands, key=lambda one: one[0].recorded_at)
            every = [record, *(limits[one] for one in minimums)]
            record = min(every, key=lambda one: one.recorded_at)
            if not left <= record.left and self.kept(record.left & self.head) >= least:
                left, rule = record.left & self.head, which
        if left == self.head:
            rule = "nothing_consumed" if rule == "consumed" else "too_little"
        return left, rule

    def _demands(self, unlimited: Left) -> list[tuple[Record, str]]:
        """Where the maximums truncate. What only a minimum keeps exceeds none of them."""
        found, limits, most = [], self.limits, self.policy.max_bytes
        past = limits.get("past_max_age")
        if past is not None and not unlimited <= past.left:
            which = "within_max_age" if past.left <= unlimited else "past_max_age"
            if which in limits:
                found.append((limits[which], "max_age"))
        size = limits.get("within_max_bytes")
        if most is not None and size is not None:
            kept = self.kept(unlimited)
            if kept > most and self.kept(size.left) < kept:
                found.append((size, "max_bytes"))
        return found

    def holding(self) -> list[str]:
        """Return the subscribers without any of whom more would go; if there is none, those that
        have released least."""
        alone = [
            name for name in self.released if len(self.released) > 1
            and self.bound != frozenset().union(
                *(left for other, left in self.released.items() if other != name))
        ]  # fmt: skip
        least = [
            name for name, left in self.released.items()
            if not any(left < other for other in self.released.values())
        ]  # fmt: skip
        return sorted(alone or least)


def ten_each(event: Event) -> int:
    """Return the size of an event of `Lane.append`."""
    return BYTES_PER_EVENT


def check_decision(events: Events, decided: Any, size: Callable[[Event], int] = ten_each) -> None:
    """Check what `decide_retention` says of a stream now. `size`: of an event, in bytes."""

    def bytes_of(left: Left) -> int:
        return sum(size(event) for event in left if event in events.since)

    [row] = events.lane.rows("SELECT * FROM retention_inputs(:s)")
    [stream] = events.lane.rows("SELECT * FROM stream WHERE stream_id = :s")
    timed_out = [one["name"] for one in row.subscribers if one["timed_out"]]
    head = events.left(stream.head)
    now = Situation(
        Policy(stream.retention, *(getattr(stream, f"retain_{one}") for one in (
            "min_age", "max_age", "min_bytes", "max_bytes"))),
        head,
        {one["name"]: events.left(one["cut"]) & head
         for one in row.subscribers if not one["timed_out"]},
        {which: Record(one["recorded_at"], events.left(one["cut"]))
         for which, one in row.limits.items()},
        bytes_of,
    )  # fmt: skip
    left, rule = now.decide()
    assert decided.rule == rule
    assert events.left(decided.cut or stream.head) == left
    assert (decided.cut is None) == (left == head)
    assert (None if decided.bound is None else events.left(decided.bound)) == now.bound
    freed = frozenset(events.since) & (head - left)
    assert (decided.events, decided.bytes) == (len(freed), bytes_of(freed))
    minimum = rule in ("min_age", "min_bytes", "too_little")
    bounded = now.bound is not None and not minimum
    assert decided.held_by == (now.holding() if bounded else [])
    behind = [name for name, one in now.released.items() if not one <= left]
    assert decided.truncated_past == (sorted(behind) if rule.startswith("max") and bounded else [])
    assert decided.timed_out == sorted(timed_out)
    assert re.fullmatch(reason(rule, now.holding(), sorted(timed_out)), decided.reason)


def reason(rule: str, holding: list[str], timed_out: list[str]) -> str:
    """Return how a decision says its reason, as a pattern."""
    who = "all subscribers" + (" that have not timed out" if timed_out else "")
    nobody = "no subscriber reads the stream"
    if timed_out:
        nobody = rf"every subscriber has timed out \({', '.join(timed_out)}\)"
    gone, held = r"( \(.+ deleted\))?", f"held by {', '.join(holding)}"
    beyond = r"(older than the m\w+ age|beyond the m\w+ size), \d.*"
    return {
        "keep": "retention is keep, so the stream keeps everything",
        "no_rule": f"{nobody}{gone}, so nothing counts as consumed, and there is no maximum",
        "consumed": f"{who}{gone} are past it; {held}",
        "nothing_consumed": f"nothing beyond the head is consumed by {who}{gone}; {held}",
        "min_age": f"consumed{gone}, and {beyond}",
        "min_bytes": f"consumed{gone}, and {beyond}",
        "max_age": f"it is {beyond}",
        "max_bytes": f"it is {beyond}",
        "too_little": rf"nothing (is {beyond}|exceeds the maximum)|"
                      r"what \w+ allows is truncated already",
    }[rule]  # fmt: skip
