"""Events are erased by a condition, and by the keys of a routing key that is an expression."""

from typing import Any

import weir as library
from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.streams import rows
from weir.actions import ACTIONS
from weir.operations.action import Job
from weir.operations.runner import by_hand, perform


def test_a_condition_erases_what_it_is_true_for_and_everything_only_if_that_is_meant(
    weir: Installation,
) -> None:
    def erase(**arguments: Any) -> dict[str, Any]:
        job = Job(
            "erase", by_hand("erase"), weir.settings, weir.database, start_spark=lambda: weir.spark
        )
        return perform(
            job, ACTIONS["erase"], {"stream": "s/people", "reason": "asked", **arguments}
        )

    def found(said: dict[str, Any]) -> int:
        events, _files = said["streams"]["s/people"]
        return int(events)

    def left() -> list[int]:
        return sorted(library.read("s/people", settings=weir.settings)["n"].to_pylist())

    with library.open(settings=weir.settings, spark=weir.spark) as store:
        store.create_stream("s/people", "concat(who, '!')", segments=2)
        store.append(
            "s/people",
            weir.spark.createDataFrame([(f"w{n % 3}", n) for n in range(9)], "who string, n int"),
        )
    assert found(erase(keys=["w1!"])) == 3
    assert erase(keys=["w1!"], dry_run=False)["events"] == 3
    assert left() == [0, 2, 3, 5, 6, 8]
    assert erase(condition="who = 'nobody'", dry_run=False)["events"] == 0
    assert found(erase(condition="n >= 0")) == 6
    with raises("erases_everything"):  # and leaves no request behind
        erase(condition="n >= 0", dry_run=False)
    assert erase(condition="who = 'w2' AND n > 2", dry_run=False)["events"] == 2
    assert left() == [0, 2, 3, 6]
    assert erase(condition="n >= 0", everything=True, dry_run=False)["events"] == 4
    assert left() == []
    asked = """SELECT certificate #>> '{document,asked,condition}' AS condition
        FROM weir.certificates ORDER BY asked_at"""
    assert [row.condition for row in rows(weir.database, asked)] == [
        None,
        "who = ? AND n > ?",
        "n >= ?",
    ]
    kept = rows(weir.database, "SELECT arguments::text FROM weir.job_runs WHERE job = 'erase'")
    assert not [row for row in kept if "w1" in str(row) or "w2" in str(row)]
