"""What follows a failure of a function on pyarrow: a batch is read again, split or quarantined."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weir
from tests.consumers.test_reader import append, found
from tests.raises import raises
from weir.arrow.engine import Pyarrow
from weir.consumers.consumer import Consumer
from weir.consumers.outputs import Output
from weir.errors import Unavailable
from weir.reader_groups.batches.reading import Reading


def consumer(
    store: weir.StreamStore, function: Callable[..., Any], *outputs: str, **options: Any
) -> Consumer[pa.Table]:
    parsed = tuple(Output.parse(one, store.settings.output_roots) for one in outputs)
    reading = Reading.of(store.settings, order=options.pop("order", "segment"))
    return Consumer(store, Pyarrow(store), "g", "reader", function, parsed, reading, **options)


def refusing(*numbers: int) -> Callable[[pa.Table], pa.Table]:
    """A function that fails on events with these numbers."""

    def function(events: pa.Table) -> pa.Table:
        if pc.any(pc.is_in(events["n"], value_set=pa.array(numbers))).as_py():
            raise ValueError("a number that is not wanted")
        return events

    return function


@pytest.mark.parametrize("order", ["segment", "stream"])
def test_events_that_fail_are_quarantined_and_the_others_are_published_once(
    store: weir.StreamStore, order: str
) -> None:
    for first in (0, 20, 40):
        append(store, range(first, first + 20))
    done = consumer(
        store, refusing(13, 47), "stream:s/out", on_error="quarantine", order=order
    ).run()
    assert (done["events"], done["rejected"]) == (60, 2)
    rest = [n for n in range(60) if n not in (13, 47)]
    assert sorted(store.read("s/out")["n"].to_pylist()) == rest
    rejected = store.read("s/in.rejected")
    rows = sorted(map(json.loads, rejected["row"].to_pylist()), key=lambda row: row["n"])
    assert rows == [{"k": "key 6", "n": 13}, {"k": "key 5", "n": 47}]
    for row in rejected.to_pylist():
        assert row["reason"] == "ValueError: a number that is not wanted"
        assert row["source"].startswith("group g, segment ")
    found_at = {(row["source"][-3:], row["place"]) for row in rejected.to_pylist()}
    there = [row for row in store.read("s/in").to_pylist() if row["n"] in (13, 47)]
    assert found_at == {(f"{row['_segment']}.0", row["_offset"]) for row in there}
    states = found(store, "SELECT state, count(*) FROM reader_batch GROUP BY state ORDER BY state")
    assert [state for state, _ in states] == ["committed", "split"]


def test_a_run_that_splits_commits_what_is_before_the_failing_event(
    store: weir.StreamStore,
) -> None:
    append(store, range(20))
    with raises("event_failed single event ValueError"):
        consumer(store, refusing(13), "stream:s/out", on_error="split", order="stream").run()
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(13))
    consumer(store, refusing(), "stream:s/out", order="stream").run()
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(20))


def test_a_row_that_its_table_refuses_is_the_events_fault(
    store: weir.StreamStore, results: str
) -> None:
    append(store, [1, 2, 3])
    append(store, [2])  # the key of the table is there already
    output = f"table:{results}"
    done = consumer(store, lambda e: e, output, on_error="quarantine").run()
    assert done["rejected"] == 1
    assert [n for (n,) in found(store, f"SELECT n FROM {results} ORDER BY n")] == [1, 2, 3]


def _away() -> None:
    raise ConnectionError("the service does not answer")


@pytest.mark.parametrize(
    ("fails", "says"),
    [
        (lambda e: e["nope"], "batch_failed nope does not exist"),
        (lambda e: e.filter(pc.field("nope") > 1), "batch_failed nope"),
        (lambda e: pc.add(e["k"], 1), "batch_failed no kernel"),
        (lambda e: e.nope, "batch_failed AttributeError nope"),
        (lambda _: Path("/nowhere/x").read_text(), "batch_failed FileNotFoundError"),
        (lambda _: None, "function_invalid returned NoneType s/out"),
        (lambda e: {"other": e}, "function_invalid returned other s/out"),
        (lambda e: {"s/out": e, "more": e}, "function_invalid returned ['s/out']"),
        (lambda _: {}, "function_invalid returned ['s/out']"),
        (lambda _: {"s/out": 5}, "function_invalid returned {'s/out': 'int'}"),
        (lambda e: {1: e, None: 2}, "function_invalid returned {'1': 'Table', 'None': 'int'}"),
        (lambda _: _away(), "batch_failed ConnectionError"),
        (lambda _: psycopg2.connect("host=127.0.0.1 port=1"), "batch_failed OperationalError"),
    ],
    ids=range(13),
)
def test_a_mistake_of_the_program_or_an_outage_splits_no_batch_and_rejects_no_event(
    store: weir.StreamStore, fails: Callable[[pa.Table], Any], says: str
) -> None:
    append(store, [1, 2])
    with raises(says):
        consumer(store, fails, "stream:s/out", on_error="quarantine").run()
    assert store.count("s/out") == 0
    assert found(store, "SELECT FROM reader_batch WHERE state <> 'open'") == []


def test_a_batch_that_failed_for_a_while_is_read_again(store: weir.StreamStore) -> None:
    append(store, [1, 2])
    tried = []

    def at_last(events: pa.Table) -> pa.Table:
        tried.append(events.num_rows)
        if len(tried) < 2:
            raise ConnectionError("for a while")
        return events

    done = consumer(store, at_last, "stream:s/out", retries=1).run()
    assert done["events"] == 2
    assert tried == [2, 2]
    append(store, [3])

    def away(_: pa.Table) -> pa.Table:
        raise Unavailable("service_away", "the service is away; try again later.")

    with raises("service_away"):
        consumer(store, away, "stream:s/out", on_error="quarantine").run()
    mistakes: list[int] = []

    def mistaken(events: pa.Table) -> Any:
        mistakes.append(1)
        return events.nowhere

    with raises("batch_failed"):
        consumer(store, mistaken, "stream:s/out", retries=5).run()
    assert len(mistakes) == 1, "a mistake in the program is not tried again"
