"""What docs/consumers.md shows is run, block after block, as somebody who reads it would."""

import json
import os
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.crash.jobs import execute, write_config
from tests.spark.installation import Installation
from weir.model.names import stream_name

PAGE = Path(__file__).parents[2] / "docs/consumers.md"
README = Path(__file__).parents[2] / "README.md"
FLAGS = re.MULTILINE | re.DOTALL
BLOCK = re.compile(r"^```(python|sql)[^\n]*\n(.*?)^```$", FLAGS)
FLIGHTS = [("AA", 1, 90.0), ("AA", 2, 5.0), ("UA", 3, 61.0), ("UA", 4, None), ("DL", 5, 300.0)] * 8
LATE = [(carrier, flight) for carrier, flight, delay in FLIGHTS if delay and delay > 60]


@pytest.fixture
def weir(weir: Installation, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """The installation that the page speaks of."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(weir.settings)))
    flights = weir.create("nyc/flights", "carrier", segments=2)
    weir.create("nyc/notes", "key")
    weir.create("nyc/late", "carrier")
    weir.create("nyc/late-streamed", "carrier")
    weir.create("nyc/replayed", "carrier")
    weather = weir.create("nyc/weather", "origin")
    weir.append(weather, weir.spark.createDataFrame([("JFK", 39.0)], "origin string, temp double"))
    frame = weir.spark.createDataFrame(FLIGHTS, "carrier string, flight int, dep_delay double")
    weir.append(flights, frame.selectExpr("*", "timestamp'2013-01-01 05:00:00Z' AS time_hour"))
    for group in ("late", "late-by-hand", "late-by-carrier", "late-elsewhere"):
        weir.group(flights, name=group)
    weir.group(flights, weather, name="trips")
    return weir


def parquet(weir: Installation, output: str) -> list[Any]:
    found = weir.query("SELECT path FROM parquet_outputs WHERE output = :o", o=output)
    return weir.spark.read.parquet(*[row.path for row in found]).collect()


@pytest.mark.release
def test_every_example_of_the_page_does_what_it_says(
    weir: Installation, test_database: TestDatabase, tmp_path: Path
) -> None:
    known: dict[str, Any] = {"spark": weir.spark}
    text = PAGE.read_text().replace("/data/", f"{tmp_path}/")
    # Spark's workers have the environment in which Spark was started, before this test.
    config = os.environ["WEIR_CONFIG"]
    text = text.replace(".load(", f'.option("config", "{config}").load(')
    blocks = BLOCK.findall(text)
    streaming = 0
    for kind, block in blocks:
        if kind == "sql":
            execute(test_database.owner_dsn, block)
        else:
            code = compile(block, str(PAGE), "exec")
            if "DAG(" not in block:  # tests/airflow/test_examples_in_docs.py has those
                exec(code, known)  # noqa: S102 - it is ours
                streaming += "foreachBatch" in block
        if "def late(" in block:
            weir.consumer("late", known["late"], "parquet:late").run()
    assert len(blocks) >= 9
    assert sorted((r.carrier, r.flight) for r in parquet(weir, "late")) == sorted(LATE)

    # Its own program: three outputs of one batch.
    late = sorted((r.carrier, r.flight) for r in weir.frame(stream_name("nyc/late")).collect())
    assert late == sorted(LATE)
    table = "SELECT carrier, flight FROM reports.late ORDER BY 1, 2"
    assert execute(test_database.owner_dsn, table) == sorted(LATE)
    counted = {r.carrier: r["count"] for r in parquet(weir, "late-by-carrier")}
    assert counted == {"AA": 8, "UA": 8, "DL": 8}
    by_hand = {r.carrier: r["count_all"] for r in parquet(weir, "late-by-hand")}
    assert by_hand == counted

    # Several streams in one order.
    trips = parquet(weir, "trips")
    assert {(r["_stream"], r.origin, r.temp) for r in trips} == {("nyc/flights", None, None)}
    assert len(trips) == len(FLIGHTS)
    assert known["everything"].first()["_stream"] == "nyc/weather"

    # Another sink, by the batch's number.
    files = (tmp_path / "late").glob("batch=*.1/*.json")
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted((one["carrier"], one["flight"]) for one in lines) == sorted(LATE)

    assert known["table"]["text"].to_pylist() == ["x", "y"]
    assert streaming == 1
    streamed = weir.frame(stream_name("nyc/late-streamed"))
    assert sorted((r.carrier, r.flight) for r in streamed.collect()) == sorted(LATE)
    # A micro-batch that is published again, as after a restart in the middle of it.
    numbers = [row.batch_id for row in weir.query(
        "SELECT batch_id FROM transactions WHERE stream = 'nyc/late-streamed'")]  # fmt: skip
    known["publish"](streamed.select("carrier", "flight", "dep_delay"), int(numbers[0]))
    assert streamed.count() == weir.frame(stream_name("nyc/late-streamed")).count()
    lag = dict(map(tuple, weir.query("SELECT reader_group, unread_events FROM lag")))
    assert lag.keys() >= {"late", "late-by-carrier", "late-elsewhere", "trips"}
    assert set(lag.values()) == {0}  # each has read everything


def test_the_function_of_the_readme_does_what_it_says(weir: Installation) -> None:
    readme = textwrap.dedent(
        next(
            code
            for code in re.findall(r"^ *```python[^\n]*\n(.*?)^ *```$", README.read_text(), FLAGS)
            if "def totals(" in code
        )
    )
    known: dict[str, Any] = {}
    exec(compile(readme, str(README), "exec"), known)  # noqa: S102 - it is ours
    orders = weir.create("shop/orders", "customer")
    frame = weir.spark.createDataFrame([("a",), ("b",), ("a",)], "customer string")
    weir.append(orders, frame)
    weir.consumer(weir.group(orders, name="totals"), known["totals"], "parquet:totals").run()
    assert {r.customer: r.orders for r in parquet(weir, "totals")} == {"a": 2, "b": 1}
