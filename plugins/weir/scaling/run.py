"""One run of scaling by load: evaluate the streams that moved, and scale those whose segments no
longer fit their load.

The split points of all streams are found at once, before any stream is locked. Then each stream is
scaled in a transaction of its own, which does nothing if the stream is no longer in the epoch on
which the decision was made.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.controller.locks import lock_streams, why_not_active
from weir.controller.scale import scale_in
from weir.database.connection import Database
from weir.database.requests import Request
from weir.model.key_space import KeyRange
from weir.model.names import StreamName
from weir.model.scale_decision import Change, ScaleDecision, decide
from weir.model.segment import Segment
from weir.model.split_points import Found, HotKey, HotSegment, SplitPoints
from weir.queries.controller import epochs
from weir.queries.scaling import run as sql
from weir.scaling.evaluate import Evaluated, read_loads, record_nothing, recorded
from weir.scaling.measurements import measuring

FindPoints = Callable[[Sequence[HotSegment]], Found]


class ByLoad(TypedDict):
    """What was decided about a stream, or the `error` with which that failed.

    Unless the rule is `void`, also its `epoch`, the `changes`, and the `hot_keys`; of one that was
    scaled `created` (name, low and high key of each new segment). `retryable`: false if another try
    would fail, too."""

    stream: str
    error: NotRequired[str]
    retryable: NotRequired[bool]
    epoch: NotRequired[int]
    action: NotRequired[str]
    rule: NotRequired[str]
    reason: NotRequired[str]
    changes: NotRequired[list[dict[str, object]]]
    hot_keys: NotRequired[list[str]]
    created: NotRequired[list[list[str | float]]]


@dataclass(frozen=True)
class _Plan:
    """A stream, what was decided about it, and what was found in its hot segments."""

    stream: Evaluated
    decision: ScaleDecision
    points: dict[Segment, SplitPoints]

    def to_measure(self) -> list[HotSegment]:
        """Return the hot segments whose split points and hot keys are still to be found."""
        stream = self.stream
        return [
            HotSegment(
                stream.stream_id, segment, pieces, rate, stream.policy.target_rate or 0,
                stream.policy.unit, stream.measured_from,
            )
            for (segment,), pieces, rate in self.decision.to_measure(self._divided())
        ]  # fmt: skip

    def decided_again(self) -> "_Plan":
        """Return the plan with as many pieces as the split points allow."""
        decision = decide(self.stream.policy, self.stream.loads, self._divided())
        return replace(self, decision=decision)

    def _divided(self) -> dict[Segment, int]:
        return {segment: len(one.points) + 1 for segment, one in self.points.items()}

    def ranges(self, change: Change) -> list[KeyRange]:
        """Return the key ranges of the new segments of a change."""
        low, high = change.segments[0].key_low, change.segments[-1].key_high
        inner = self.points[change.segments[0]].points if self.decision.action == "split" else ()
        bounds = [low, *inner, high]
        return [KeyRange(a, b) for a, b in pairwise(bounds)]

    def hot_keys(self) -> list[tuple[Segment, HotKey]]:
        """Return the keys that are too hot for any segment, with the segments they are in now."""
        return [(segment, key) for segment, one in self.points.items() for key in one.hot_keys]

    def report(self) -> ByLoad:
        """Return what the report of the run and the record of the decision say."""
        return {
            "stream": self.stream.name,
            "epoch": self.stream.epoch,
            "action": self.decision.action,
            "rule": self.decision.rule,
            "reason": self.decision.reason,
            "changes": [
                {
                    "segments": [segment.name for segment in change.segments],
                    "rate": round(change.rate, 6),
                    "points": [key_range.low for key_range in self.ranges(change)][1:],
                }
                for change in self.decision.changes
            ],
            "hot_keys": [key.key for _, key in self.hot_keys()],
        }


def scale_by_load(
    database: Database,
    find_points: FindPoints,
    *,
    names: Sequence[StreamName] | None = None,
    dry_run: bool = False,
    request_id: str,
) -> list[ByLoad]:
    """Evaluate the streams that scale by load, and scale those that their policies say.

    `find_points`: finds where to split hot segments, and their hot keys, of all streams at once; it
    is not called if no segment is hot. `names`: evaluate these streams instead, moved or not; all
    if it is empty. `dry_run`: change and record nothing.

    Returns each stream that was decided about otherwise than before, or with `names` each. One that
    fails does not stop the others; one in `names` that does not exist or is sealed counts as
    failed. Streams whose last measurement may have killed its run come last, one by one; without
    `names` they rest between two of them.
    """
    streams = database.transaction(
        partial(read_loads, names=names or None, everything=names is not None)
    )
    reports: list[ByLoad] = []
    known = {stream.name for stream in streams}
    if others := [name for name in names or () if str(name) not in known]:
        why = database.transaction(partial(why_not_active, names=others))
        reports = [{"stream": one, "error": why[one], "retryable": False} for one in why]
    suspects = [one for one in streams
                if one.silent_attempts and not (one.rests and names is None)]  # fmt: skip
    suspects.sort(key=lambda one: one.silent_attempts)
    rounds = [[one for one in streams if not one.silent_attempts], *([one] for one in suspects)]

    def find(hot: Sequence[HotSegment]) -> Found:
        if dry_run:
            return find_points(hot)
        with measuring(database, sorted({one.stream_id for one in hot})):
            return find_points(hot)

    for some in rounds:
        reports += _scale(
            database, some, find, everything=names is not None, dry_run=dry_run,
            request_id=request_id,
        )  # fmt: skip
    return reports


def _scale(
    database: Database,
    streams: Sequence[Evaluated],
    find_points: FindPoints,
    *,
    everything: bool,
    dry_run: bool,
    request_id: str,
) -> list[ByLoad]:
    """Decide about streams, scale them, and report it."""
    plans, failed = _plan(streams, find_points)
    reports: list[ByLoad] = []
    reports += [{"stream": name, "error": error} for name, error in failed.items()]
    changing = [plan for plan in plans if plan.decision.action != "none"]
    nothing = [plan for plan in plans if plan.decision.action == "none"]
    reported = [p for p in nothing if everything or not p.stream.repeats(p.decision)]
    reports += [plan.report() for plan in reported]
    if dry_run:
        return reports + [plan.report() for plan in changing]
    if nothing:
        pairs = [(plan.stream, plan.decision) for plan in nothing]
        database.transaction(partial(record_nothing, decided=pairs))
    for plan in plans:
        if plan.decision.action == "none" and not plan.points:
            continue
        work = partial(_carry_out, plan=plan, request_id=request_id)
        what = f"stream {plan.stream.name}"
        done, error = database.one_of_many(what, partial(database.transaction, work))
        if error:
            reports.append({"stream": plan.stream.name, "error": error})
        elif done is not None and plan in changing:
            reports.append(done)
    return reports


def _plan(
    streams: Sequence[Evaluated], find_points: FindPoints
) -> tuple[list[_Plan], dict[str, str]]:
    """Return what to do with each stream; and of some, why that could not be found out."""
    plans = {s.stream_id: _Plan(s, decide(s.policy, s.loads), {}) for s in streams}
    failed: dict[str, str] = {}
    # Mostly once. Where the data allows fewer pieces than the rate asks for, other segments of the
    # stream may be split instead; the pieces of a segment only become fewer, so this ends.
    while wanted := [hot for plan in plans.values() for hot in plan.to_measure()]:
        found = find_points(wanted)
        for hot in wanted:
            if (plan := plans.get(hot.stream_id)) is None:
                continue
            if (error := found.failed.get(hot.stream_id)) is not None:
                failed[plan.stream.name] = error
                del plans[hot.stream_id]
                continue
            key = (hot.stream_id, hot.segment.segment_id)
            plan.points[hot.segment] = found.points[key]
        for stream_id in {hot.stream_id for hot in wanted} & plans.keys():
            plans[stream_id] = plans[stream_id].decided_again()
    return list(plans.values()), failed


def _carry_out(connection: Connection, plan: _Plan, request_id: str) -> ByLoad | None:
    """Scale a stream as it was decided, and record the decision and the hot keys; forget all other
    keys but those of segments that are too young to say.

    Returns the report; with the rule `void`, and nothing done, if the stream has another epoch or
    another policy by now; None if it was sealed.
    """
    seen, decision = plan.stream, plan.decision
    [stream] = lock_streams(connection, ids=[seen.stream_id])
    # After a commit whose answer was lost, the same work runs again.
    request = Request[ByLoad](
        f"{request_id}@{seen.epoch}", "scale_by_load", seen.name, plan.report()
    )
    if (before := request.result(connection)) is not None:
        return before
    if stream.state != "active":
        return None
    if stream.current_epoch != seen.epoch or stream.configuration.scaling_policy != seen.policy:
        reason = (
            f"decided in epoch {seen.epoch} by the policy of that time, but the stream is in epoch "
            f"{stream.current_epoch} or has another policy by now"
        )
        return {"stream": seen.name, "action": "none", "rule": "void", "reason": reason}
    replaced = [segment for change in decision.changes for segment in change.segments]
    created: list[Segment] = []
    if decision.action != "none":
        created = scale_in(
            connection, stream,
            epochs.active_segments(connection, stream_id=stream.stream_id),
            [segment.segment_id for segment in replaced],
            [one for change in decision.changes for one in plan.ranges(change)],
            cause="policy", reason=decision.reason, request_id=request_id,
        )  # fmt: skip
    report = plan.report()
    report["created"] = [[s.name, s.key_low, s.key_high] for s in created]
    gone = set(replaced)
    loads = [load for load in seen.loads if load.segment in gone]
    keys = plan.hot_keys()
    young = [one for one in seen.may_be_hot(decision) if one not in plan.points]
    sql.record(
        connection,
        stream_id=stream.stream_id,
        stream=str(stream.name),
        epoch=seen.epoch,
        action=decision.action,
        rule=decision.rule,
        reason=decision.reason,
        policy=seen.policy_text,
        interval=seen.interval,
        loads=json.dumps(recorded(loads)),
        changes=json.dumps(report["changes"]),
        lows=[segment.key_low for segment in young],
        highs=[segment.key_high for segment in young],
        positions=[key.position for _, key in keys],
        keys=[key.key for _, key in keys],
        shares=[key.share for _, key in keys],
        rates=[key.share * seen.rate_of(segment) for segment, key in keys],
    )
    return request.done(connection, report) if created else report
