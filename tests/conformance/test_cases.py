"""Scenarios read from Pravega's tests, as data: `cases.json`, one test per case.

Answered here is what the pure modules can answer; `tests.conformance.cases` lists the others.
"""

from typing import Any

import pytest

from tests.conformance.cases import (
    BY_A_GROUP,
    BY_A_QUERY,
    BY_AN_OPERATION,
    BY_THE_POLICY,
    CASES,
    FILE,
    IN_RETENTION,
    NEVER,
    listed,
)
from weir.errors import Conflict, InvalidInput
from weir.model.key_space import KeyRange, check_scale, even_split
from weir.model.segment import Segment, segment_id
from weir.model.stream_cut import FUTURE, StreamCut, at_or_before, check_valid, meet

# Weir's answer is the one the case recommends, with the reason from semantics 17.
DIFFERENT = {
    "QK-01": "validity is exact: future segments must cover the whole of a gap",
    "QK-04": "validity is exact: a cut of future segments alone is refused, not a crash",
    "QK-05": "a range must lie within the key space and not be empty",
    "QK-06": "the last of the initial ranges is made to end at 1.0",
    "QK-08": "the lower bound does not depend on the order of subscribers",
    "QK-09": "validity is exact: a frontier is valid whatever was created before its segments",
}

# Where a case does not say how much has been written.
TAIL = 1_000_000


class History:
    """The segments of a case's history, by their `number@epoch`."""

    def __init__(self, setup: dict[str, Any]) -> None:
        recorded = FILE["histories"].get(setup.get("history"), setup)
        self.minimum: int | None = recorded.get("min_segments")
        self.segments: dict[str, Segment] = {}
        self.sizes: dict[str, int] = {}
        self.epochs: list[list[str]] = []
        if "initial_ranges" in recorded:
            ranges = [KeyRange(*r) for r in recorded["initial_ranges"]]
        else:
            ranges = even_split(recorded.get("initial_segments", 1))
        self._advance([], list(enumerate(ranges)))
        for operation in [*recorded.get("ops", []), setup.get("then_scale")]:
            if operation is not None:
                self._apply(operation)

    def active(self) -> list[Segment]:
        return [self.segments[name] for name in self.epochs[-1]]

    def cut(self, offsets: dict[str, int]) -> StreamCut:
        return StreamCut({self.segments[n]: o if o >= 0 else FUTURE for n, o in offsets.items()})

    def written(self, cut: StreamCut) -> dict[str, int]:
        return {
            name.replace(".", "@"): -1 if isinstance(offset, str) else offset
            for name, offset in cut.to_json().items()
        }

    def _apply(self, operation: dict[str, Any]) -> None:
        self.sizes |= operation.get("sealed_sizes", {})
        if "txn_epoch" in operation:
            for names in (self.epochs[operation["txn_epoch"]], self.epochs[-1]):
                copied = [self.segments[name] for name in names]
                self._advance([], [(s.number, KeyRange(s[1], s[2])) for s in copied])
            return
        check_scale(
            self.active(),
            [self.segments[name].segment_id for name in operation["seal"]],
            [KeyRange(*r) for r in operation["new"]],
        )
        number = max(segment.number for segment in self.active()) + 1
        kept = [name for name in self.epochs[-1] if name not in operation["seal"]]
        ranges = [KeyRange(*r) for r in operation["new"]]
        created = self._advance(kept, list(enumerate(ranges, number)))
        assert created == operation.get("creates", created)

    def _advance(self, kept: list[str], created: list[tuple[int, KeyRange]]) -> list[str]:
        epoch = len(self.epochs)
        names = [f"{number}@{epoch}" for number, _ in created]
        for name, (number, (low, high)) in zip(names, created, strict=True):
            self.segments[name] = Segment(segment_id(number, epoch), low, high)
        self.epochs.append(kept + names)
        return names


def scale_is_valid(history: History, scale: dict[str, Any]) -> str:
    try:
        check_scale(
            history.active(),
            [history.segments[name].segment_id for name in scale["seal"]],
            [KeyRange(*r) for r in scale["new"]],
            history.minimum,
        )
    except Conflict:
        return "PreConditionFailure"
    except InvalidInput:
        return "InputInvalid"
    return "accepted"


def cut_is_valid(history: History, offsets: dict[str, int]) -> bool:
    ends = {s.segment_id: history.sizes.get(n, TAIL) for n, s in history.segments.items()}
    try:
        check_valid(history.cut(offsets), history.segments.values(), ends)
    except InvalidInput:
        return False
    return True


def segments_between(history: History, cuts: list[dict[str, int]]) -> str | list[str]:
    """U(from) minus U(to), and the present segments of `to`; empty means the head or the tail."""
    start = history.cut(cuts[0] or dict.fromkeys(history.epochs[0], 0))
    end = history.cut(cuts[1] or dict.fromkeys(history.epochs[-1], TAIL))
    if not at_or_before(start, end):
        return "IllegalArgument"
    return [
        name
        for name, s in history.segments.items()
        if start.contains(s) and (s in end.present or not end.contains(s))
    ]


def records_at_or_before(case: dict[str, Any], offsets: list[list[int]]) -> list[int | None]:
    history = History(case["setup"])
    records = case["setup"]["retention_records"]
    cuts = [history.cut({"0@0": a, "1@0": b}) for a, b in offsets]
    found = [[r["time"] for r in records if at_or_before(history.cut(r["cut"]), c)] for c in cuts]
    return [max(times, default=None) for times in found]


def answer(case: dict[str, Any], question: str, given: Any) -> object:
    """What Weir says to one question of a case, in the words of the file."""
    history = History(case["setup"])
    match question.split(" ")[0]:
        case "submit_scale":
            return scale_is_valid(history, given)
        case "compare":
            a, b = map(history.cut, given)
            before = "Before" if at_or_before(a, b) else "Overlaps"
            return "EqualOrAfter" if at_or_before(b, a) else before
        case "is_valid":
            many = isinstance(given, list)
            return (
                [cut_is_valid(history, c) for c in given] if many else cut_is_valid(history, given)
            )
        case "find_record_at_or_before":
            return records_at_or_before(case, given)
        case "segments_between":
            return segments_between(history, given)
        case "lower_bound_of":
            return history.written(meet(map(history.cut, given)))
        case "lower_bound":
            a, b = (history.cut(cut) for cut in case["setup"]["subscriber_cuts"].values())
            return history.written(meet([a, b] if given.startswith("A then B") else [b, a]))
        case "id_of":
            return segment_id(*given)
        case "generalise":
            return f"100@100 = {segment_id(100, 100)}"
        case "end_of_last_range":
            return even_split(case["setup"]["initial_segments"])[-1].high
    raise AssertionError(f"no answer to {question!r}: add one")


def answered() -> list[str]:
    elsewhere = (BY_AN_OPERATION, BY_A_QUERY, IN_RETENTION, BY_A_GROUP, BY_THE_POLICY, NEVER)
    return [i for i in CASES if not any(listed(i, where) for where in elsewhere)]


@pytest.mark.parametrize("case_id", answered())
def test_case(case_id: str) -> None:
    case = CASES[case_id]
    expected = case["expected"]
    if case_id in DIFFERENT:
        expected = expected["recommended"]
    action = case["action"]
    if isinstance(action, dict):
        [(question, given)] = action.items()
        assert answer(case, question, given) == expected
    else:
        questions = [item for step in action for item in step.items()]
        assert [answer(case, question, given) for question, given in questions] == expected


def test_every_case_is_answered_or_listed_with_the_reason() -> None:
    areas = {case["area"] for case in CASES.values()}
    elsewhere = (BY_AN_OPERATION, BY_A_QUERY, IN_RETENTION, BY_A_GROUP, BY_THE_POLICY)
    for where in (*elsewhere, NEVER):
        assert set(where) <= areas | set(CASES)
    assert not [i for i in CASES if sum(listed(i, where) for where in elsewhere) > 1]
    assert set(DIFFERENT) <= set(answered())


@pytest.mark.parametrize("name", FILE["histories"])
def test_history_creates_the_segments_that_the_file_names(name: str) -> None:
    recorded, history = FILE["histories"][name], History({"history": name})
    operations = recorded.get("ops", [])
    named = [one for operation in operations for one in operation.get("creates", [])]
    assert set(named) <= set(history.segments)
    rolls = sum("txn_epoch" in operation for operation in operations)
    assert len(history.epochs) == 1 + len(operations) + rolls, "a roll makes two epochs"
