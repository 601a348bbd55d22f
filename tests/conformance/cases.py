"""The scenarios, and which of them are answered where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

Answer = TypeVar("Answer", bound=Callable[..., Any])

FILE: dict[str, Any] = json.loads((Path(__file__).parent / "cases.json").read_text())
CASES: dict[str, dict[str, Any]] = {case["id"]: case for case in FILE["cases"]}

# By area or by id. Answered by operations on a stream in the database.
BY_AN_OPERATION = {
    "truncation", "transactions", "rolling-transactions", "scale-workflow", "SV-19", "SV-21",
    "watermarks",
}  # fmt: skip

# Answered by queries about a stream in the database.
BY_A_QUERY = {
    "epoch-queries", "successors", "size-till-cut", "stream-cut-span", "batch-next-cut", "ID-03",
    "ID-05", "QK-02", "QK-07",
}  # fmt: skip

# Answered by the rules of scaling by load.
BY_THE_POLICY = {"auto-scale"}

# Answered by runs of retention.
IN_RETENTION = {
    "retention-set", "retention-size", "retention-time", "SU2-01", "CB-01", "CB-03",
    "CB-05", "CB-07", "CB-09", "CB-11", "CB-13",
}  # fmt: skip

# Answered by a reader group in the database.
BY_A_GROUP = {
    "event-ordering", "reader-group-assignment", "reader-group-checkpoint",
    "reader-group-metrics-config", "SU2-03", "QK-03",
}  # fmt: skip

# Questions that have no meaning here, with the reason from the table in semantics 17.
NEVER = {
    "SW-05": "a scale can be seen in progress: never, it is one transaction",
    "SW-07": "a scale can be seen in progress: never, it is one transaction",
    "RX-05": "commits queue up: never, a commit is done when called, in the order of the lock",
}


def listed(case_id: str, where: Any) -> bool:
    """Return whether a case is listed, by itself or by its area."""
    return case_id in where or CASES[case_id]["area"] in where


class Answers(dict[str, Callable[..., Any]]):
    """What answers which case; called with an id, it registers an answer to it."""

    def __call__(self, case_id: str) -> Callable[[Answer], Answer]:
        def register(answer: Answer) -> Answer:
            self[case_id] = answer
            return answer

        return register
