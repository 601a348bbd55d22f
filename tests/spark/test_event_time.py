"""Event times of rows that come from Spark: the same as of others, in every session; and what jobs
and consumers get of them."""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir as api
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.installation import Installation, setting
from tests.world.jobs import run_job
from weir.model.names import StreamName, stream_name
from weir.programs.opening import shared
from weir.spark import Reader
from weir.spark.appends.transaction import transaction
from weir.spark.reads.source import register

UNTIL = datetime(2013, 6, 1, 10, tzinfo=UTC)
TEXTS = [
    "2013-06-01", "2013-06-01T09:00:00+02:00", "2013-06-01 09:00", "2013-06-01T09:00:00.5Z",
    "2013-02-30", "2013-06-01 24:00", "2013-06", "today", "now", "", " 2013-06-01 ", None,
    "2013-06-01T09:00:00.123456-17:59", "0000-01-01", "9998-12-31T23:59:59.999999Z",
    "9999-01-01",
    "2013-06-01T09:00:00 Europe/Berlin", "2013-06-01T9:00", "\t2013-06-01", "1370044800",
    "2013-06-01\n", "0001-01-01", "0001-01-01T00:00:00+02:00", "٢٠١٣-06-01",
]  # fmt: skip
TIMES = pa.array(
    [datetime(2013, 6, 1, 9), None, datetime(2013, 6, 1, 11)], pa.timestamp("us", "UTC")
)


def rows_of(at: pa.Array) -> pa.Table:
    return pa.table({"k": [f"k{i}" for i in range(len(at))], "at": at})


def frame(weir: Installation, at: pa.Array) -> Any:
    pq.write_table(rows_of(at), f"{weir.input}/time.parquet")
    return weir.spark.read.parquet(f"{weir.input}/time.parquet")


def times(done: Any) -> tuple[int | None, ...]:
    return done.min_event_time, done.max_event_time, done.untimed, done.late


def ranges(weir: Installation, stream: StreamName) -> list[Any]:
    return weir.query(
        """SELECT segment, min_event_time, max_event_time FROM time_indexes WHERE stream = :name
        ORDER BY transaction_number, segment""",
        name=str(stream),
    )


def test_spark_and_pyarrow_find_the_same_event_times(weir: Installation) -> None:
    by_spark = weir.create("s/spark", event_time="at", segments=2)
    by_arrow = weir.create("s/arrow", event_time="at", segments=2)
    rows = frame(weir, pa.array(TEXTS))
    with setting(weir.spark, {"spark.sql.session.timeZone": "America/New_York"}):
        one = weir.append(by_spark, rows)
        until = (one.min_event_time or 0) + 1
        weir.query("UPDATE stream SET complete_until = :until RETURNING 1", until=until)
        two = weir.append(by_spark, rows)
    weir.query("UPDATE stream SET complete_until = NULL RETURNING 1")
    store = shared(weir.settings)
    first = store.append(str(by_arrow), rows_of(pa.array(TEXTS)), writer_id="w", batch_id="1")
    weir.query("UPDATE stream SET complete_until = :until RETURNING 1", until=until)
    second = store.append(str(by_arrow), rows_of(pa.array(TEXTS)), writer_id="w", batch_id="2")
    assert (times(one), times(two)) == (times(first), times(second))
    assert one.untimed is not None
    assert one.untimed < len(TEXTS)
    assert two.late == 1
    assert [row[1:] for row in ranges(weir, by_spark)] == [
        row[1:] for row in ranges(weir, by_arrow)
    ]


@pytest.mark.release
def test_a_transaction_over_several_streams_states_something_of_each(weir: Installation) -> None:
    one = weir.create("s/one", key="k", event_time="at")
    two = weir.create("s/two", key="k", event_time="at")
    rows = frame(weir, TIMES)
    for _ in range(2):
        with transaction(weir.appender, writer_id="w", batch_id="all") as whole:
            whole.append(one, rows, complete_until=UNTIL)
            whole.append(two, rows)
    found = weir.query("SELECT stream, complete_until, late_events FROM completeness ORDER BY 1")
    assert found == [("s/one", UNTIL, 0), ("s/two", None, 0)]


@pytest.mark.release
def test_jobs_set_it_state_it_and_a_batch_knows_it(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(weir.settings)))

    def job(which: str, **arguments: Any) -> Any:
        code = run_job(which, ["--arguments", json.dumps(arguments)])
        return code, weir.query(
            "SELECT report, error FROM job_runs WHERE job = :job ORDER BY started_at DESC LIMIT 1",
            job=which,
        )[0]

    made = {"stream": "s/events", "routing_key": "k", "schema": "k STRING, at TIMESTAMP"}
    assert "no column" in str(job("create_stream", **made, event_time="no"))
    assert weir.query("SELECT * FROM streams") == []
    assert job("create_stream", **made)[0] == 0
    frame(weir, TIMES)
    ingest = {"stream": "s/events", "files": ["time.parquet"]}
    assert "update_stream" in str(job("ingest", **ingest, complete_until="2013-06-01")[1])
    assert job("update_stream", stream="s/events", event_time="lower(k")[0] != 0
    assert job("update_stream", stream="s/events", event_time="at")[0] == 0
    _, (report, _) = job("ingest", **ingest, complete_until="2013-06-01T10:00:00Z")
    assert (report["complete_until"], report["late"], report["untimed"]) == (
        "2013-06-01T10:00:00Z", 0, 1,
    )  # fmt: skip
    group = weir.group(stream_name("s/events"))
    with Reader(weir.spark, group) as reader:
        for batch in reader:
            assert batch.complete_until == UNTIL
            assert batch.events.count() == 3
            batch.commit()
    assert weir.query("SELECT complete_until, newest_event_time FROM group_completeness") == [
        (UNTIL, datetime(2013, 6, 1, 11, tzinfo=UTC))
    ]
    assert job("update_stream", stream="s/events", event_time="none")[0] == 0
    assert weir.query("SELECT * FROM completeness") == []


@pytest.mark.parametrize("event_time", ["at", "to_timestamp(at, 'dd.MM.yyyy')"])
def test_spark_and_the_format_read_exactly_the_events_of_the_span_too(
    weir: Installation, event_time: str
) -> None:
    def of(day: int) -> Any:
        text = f"{day:02}.06.2013"
        return datetime(2013, 6, day, tzinfo=UTC) if event_time == "at" else text

    store = shared(weir.settings)
    stream = str(weir.create(segments=2, event_time=event_time, key="k"))
    for days in ([1, 5], [9, 20], [2, 28]):
        store.append(stream, pa.table({"k": [str(d) for d in days], "at": [of(d) for d in days]}))
    span: Any = {"event_time_since": "2013-06-02", "event_time_until": "2013-06-20"}
    assert sorted(store.read(stream, **span)["k"].to_pylist()) == ["2", "5", "9"]
    frame = api.spark.read(stream, columns=["k"], spark=weir.spark, settings=weir.settings, **span)
    assert frame.columns == ["k", "_segment", "_offset", "_clock"]
    assert sorted(row.k for row in frame.collect()) == ["2", "5", "9"]
    register(weir.spark)
    options = {"config": str(write_config(weir.settings)), "columns": "k",
               "eventTimeSince": "2013-06-02", "eventTimeUntil": "2013-06-20"}  # fmt: skip
    rows = weir.spark.read.format("weir").options(**options).load(stream)
    assert sorted(row.k for row in rows.collect()) == ["2", "5", "9"]
    with raises("argument_invalid event_time_since"):
        api.spark.read([stream], spark=weir.spark, settings=weir.settings, **span)
