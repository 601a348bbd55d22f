"""Read which streams must be evaluated, and the rates of their segments; record decisions.

All streams take a constant number of statements. Nothing is counted while events are appended: a
stream is evaluated if its clock is no longer the one of its last evaluation.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import Connection

from weir.model.clock import SECOND
from weir.model.names import StreamName
from weir.model.scale_decision import ScaleDecision, SegmentLoad
from weir.model.scaling_policy import ScalingPolicy
from weir.model.segment import Segment
from weir.model.segment_rates import QUIET, Rates
from weir.queries.scaling import evaluate as sql

_MOST_LOADS = 10  # of a decision to do nothing


@dataclass(frozen=True)
class Evaluated:
    """A stream as it was read: its policy, its epoch, and the loads of its segments.

    `clock`: the last clock of the stream. `interval`: its own between commits; None if it had fewer
    than two commits. `last_commit`, `until`, `now`: clocks; see `segment_rates`. `silent_attempts`:
    how many measurements since the last one that said how it ended; `rests`: whether the next one
    has to wait.
    """

    stream_id: int
    name: str
    policy: ScalingPolicy
    policy_text: str
    epoch: int
    clock: int
    interval: int | None
    last_commit: int | None
    until: int | None
    now: int
    loads: tuple[SegmentLoad, ...]
    last: tuple[str, str] | None
    silent_attempts: int
    rests: bool

    @property
    def measured_from(self) -> int:
        """The clock at which the longest window begins."""
        rates = self.loads[0].rates
        return self.now if rates is None or self.until is None else self.until - rates.windows[-1]

    def rate_of(self, segment: Segment) -> float:
        """Return the rate per second of one of its segments."""
        [load] = [load for load in self.loads if load.segment == segment]
        return max(load.rates.over[:3]) if load.rates else 0.0

    def may_be_hot(self, decision: ScaleDecision) -> list[Segment]:
        """Return the segments that are hot, or too young to say that they are not."""
        if self.policy.is_fixed:
            return []
        hot = {segment for one in decision.hot for segment in one.segments}
        return [
            load.segment
            for load in self.loads
            if load.segment in hot
            or load.rates is None
            or load.age <= max(load.rates.windows[-1], self.policy.cooldown * SECOND)
        ]

    def repeats(self, decision: ScaleDecision) -> bool:
        """Return whether a decision says what the last one did, which made no change either."""
        return decision.action == "none" and self.last == (decision.rule, decision.reason)

    def next_at(self, decision: ScaleDecision) -> int | None:
        """Return the clock from which on the passing of time alone may change a decision to do
        nothing; None: never.
        """
        if self.interval is None or self.until is None or self.last_commit is None:
            return None
        if self.until == self.last_commit:
            return self.last_commit + QUIET * self.interval
        ended = all(load.rates is not None and max(load.rates.over) == 0 for load in self.loads)
        if ended and decision.rule != "too_young":
            return None
        return self.now + self.interval // 4


def read_loads(
    connection: Connection, names: Sequence[StreamName] | None, everything: bool = False
) -> list[Evaluated]:
    """Return the streams to evaluate, with their loads, by their ids.

    `names`: None for those whose decision may be another than the last one, or, with `everything`,
    for all that scale by load; else these streams.
    """
    if names:
        rows = sql.of_streams(connection, names=[str(name) for name in names])
    else:
        rows = (sql.all_by_load if everything else sql.due)(connection)
    return [_evaluated(list(group)) for _, group in groupby(rows, lambda row: row.stream_id)]


def _evaluated(rows: Sequence[sql.Load]) -> Evaluated:
    one = rows[0]
    policy = ScalingPolicy(
        one.scaling, one.target_rate, one.scale_factor, one.min_segments, one.max_segments,
        one.scale_cooldown,
    )  # fmt: skip
    until = one.now if one.measured_until is None else one.measured_until
    loads = tuple(
        SegmentLoad(
            Segment(row.segment_id, row.key_low, row.key_high),
            None if row.rates is None else Rates(tuple(row.rates), tuple(row.windows)),
            until - row.created_at,
        )
        for row in rows
    )
    last = (one.last_rule, one.last_reason) if one.last_rule and one.last_reason else None
    return Evaluated(
        one.stream_id, one.stream, policy, one.policy, one.current_epoch, one.last_clock,
        one.commit_interval, one.last_commit, one.measured_until, one.now, loads, last,
        one.silent_attempts, one.rests,
    )  # fmt: skip


def record_nothing(
    connection: Connection, decided: Iterable[tuple[Evaluated, ScaleDecision]]
) -> None:
    """Record decisions to do nothing: each that differs from the last one of its stream, and what
    it rests on. Delete the hot keys of segments that are no longer hot.
    """
    pairs = sorted(decided, key=lambda pair: pair[0].stream_id)
    hot = [(stream.stream_id, s) for stream, decision in pairs for s in stream.may_be_hot(decision)]
    sql.record_nothing(
        connection,
        ids=[stream.stream_id for stream, _ in pairs],
        clocks=[stream.clock for stream, _ in pairs],
        policies=[stream.policy_text for stream, _ in pairs],
        next=[stream.next_at(decision) for stream, decision in pairs],
        epochs=[stream.epoch for stream, _ in pairs],
        rules=[decision.rule for _, decision in pairs],
        reasons=[decision.reason for _, decision in pairs],
        intervals=[stream.interval for stream, _ in pairs],
        loads=[
            None if stream.repeats(decision) else json.dumps(recorded(_hottest(stream.loads)))
            for stream, decision in pairs
        ],
        hot=[stream_id for stream_id, _ in hot],
        lows=[segment.key_low for _, segment in hot],
        highs=[segment.key_high for _, segment in hot],
    )


def recorded(loads: Iterable[SegmentLoad]) -> list[dict[str, object]]:
    """Return loads as they are recorded with a decision; times in seconds."""
    return [
        {
            "segment": load.segment.name,
            "rates": [round(rate, 6) for rate in load.rates.over] if load.rates else None,
            "windows": [window / SECOND for window in load.rates.windows] if load.rates else None,
            "age": load.age / SECOND,
        }
        for load in loads
    ]


def _hottest(loads: Sequence[SegmentLoad]) -> list[SegmentLoad]:
    """Return the ten loads with the highest rates, by key."""
    by_rate = sorted(loads, key=lambda load: -max(load.rates.over) if load.rates else 0.0)
    return sorted(by_rate[:_MOST_LOADS], key=lambda load: load.segment.key_low)
