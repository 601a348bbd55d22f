"""Spark Connect, with a real server: the client plans and commits, workers read and write."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql.connect import functions as F
from pyspark.sql.connect.session import SparkSession as ConnectSession

import weir as programs
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.connect_server import connect_server
from tests.spark.test_every_door import KEYS, VALUES, facts, table_of
from weir.database.connection import Database
from weir.installation.opened import close_shared
from weir.settings import Settings
from weir.spark import Appender, Reader, output, read
from weir.spark.base.connect import channel_to, connected
from weir.spark.base.python_workers import search

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def connect(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session of a server in another process, which knows no database."""
    with connect_server(tmp_path_factory.mktemp("server")) as server:
        session: Any = ConnectSession.builder.remote(server.address).create()
        yield session
        session.stop()


@pytest.fixture(autouse=True)
def only_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PySpark's functions make columns of Connect, as where a program has no other session."""
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")


@pytest.fixture
def store(
    connect: Any,
    database: Database,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> Iterator[programs.StreamStore]:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    with programs.open(settings=settings, spark=connect) as opened:
        opened.create_stream("s/in", routing_key="k", segments=3)
        yield opened
    close_shared()


@pytest.mark.parametrize("own", ["", "theirs"])
def test_a_server_gets_the_token_of_no_other(monkeypatch: pytest.MonkeyPatch, own: str) -> None:
    monkeypatch.setenv("SPARK_CONNECT_AUTHENTICATE_TOKEN", "ours")
    monkeypatch.delenv("WEIR_SPARK", raising=False)
    other = "sc://other:15002" + (own and f"/;token={own}")
    assert channel_to(other).token == (own or "ours")
    monkeypatch.setenv("WEIR_SPARK", "sc://localhost:15002")
    assert channel_to("sc://localhost:15002").token == "ours"
    assert channel_to(other).token == (own or None)
    assert channel_to(other).secure == bool(own)


def test_a_session_that_can_not_be_made_leaves_nothing(
    connect: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(session: ConnectSession) -> None:
        made.append(session)
        raise RuntimeError("no copies here")

    made = list[ConnectSession]()
    monkeypatch.delenv("SPARK_CONNECT_MODE_ENABLED")
    monkeypatch.setattr(ConnectSession, "cloneSession", fail)
    with pytest.raises(RuntimeError, match="no copies"):
        connected(f"sc://{connect.client._builder.endpoint}", {})
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
    assert made[0].is_stopped


def rows(connect: Any, start: int, count: int) -> Any:
    return connect.range(start, start + count, 1, 4).selectExpr(
        "concat('key ', id % 7) AS k", "id AS n",
        "TIMESTAMP'2026-03-29 01:30:00.000001' AS at",
        "named_struct('a', array(id), 'm', map('x', id)) AS s",
    )  # fmt: skip


def test_what_is_appended_over_connect_is_what_anybody_reads(
    connect: Any, store: programs.StreamStore
) -> None:
    frame = rows(connect, 0, 100)
    done = Appender.of(connect, "test").append_frame("s/in", frame, writer_id="w", batch_id="1")
    assert (done.events, done.repeated) == (100, False)
    assert store.append("s/in", frame, writer_id="w", batch_id="1").repeated
    found = store.read("s/in", order="stream")
    assert found["n"].to_pylist() == list(range(100))
    assert found["s"].to_pylist()[5] == {"a": [5], "m": [("x", 5)]}
    assert found["at"].to_pylist()[0] == datetime(2026, 3, 29, 5, 30, 0, 1, tzinfo=UTC)
    store.append("s/in", [{"k": "key 3", "n": 3}], writer_id="w", batch_id="2")
    again = store.read("s/in").filter(pc.equal(pc.field("k"), "key 3"))
    assert len(set(again["_segment"].to_pylist())) == 1


@pytest.mark.release
def test_the_values_of_all_doors_come_over_connect_with_the_same_digests(
    connect: Any, store: programs.StreamStore
) -> None:
    table = table_of(VALUES, KEYS).drop_columns("local")  # which Spark makes a time of its zone
    for name in ("s/arrow", "s/connect"):
        store.create_stream(name, routing_key="k", segments=1)
    store.append("s/arrow", table)
    store.append("s/connect", connect.createDataFrame(table).coalesce(1))
    assert facts(store, "s/connect") == facts(store, "s/arrow")


@pytest.mark.release
def test_keys_and_event_times_with_transforms_are_the_same_over_connect(
    connect: Any, store: programs.StreamStore
) -> None:
    key = "concat(upper(k), '-', date(at))"
    store.create_stream("s/key", routing_key=key, event_time="to_timestamp(at)", segments=16)
    frame = rows(connect, 0, 20)
    by_connect = store.append("s/key", frame)
    by_arrow = store.append("s/key", frame.toArrow())
    assert by_connect.min_event_time == by_arrow.min_event_time is not None
    found = store.read("s/key", columns=["k"]).to_pylist()
    assert len({(row["k"], row["_segment"]) for row in found}) == 7


@pytest.mark.release
@pytest.mark.parametrize("order", ["segment", "stream", "none"])
def test_all_orders_of_a_read_are_those_without_spark(
    connect: Any, store: programs.StreamStore, order: str
) -> None:
    for batch in range(3):
        store.append("s/in", rows(connect, 50 * batch, 50))
    store.scale_stream("s/in", ["0.0"])
    store.append("s/in", rows(connect, 150, 50))
    frame = read("s/in", order=order, spark=connect)
    wanted = store.read("s/in", order="stream" if order == "stream" else "segment")
    found = frame.toArrow()
    if order == "stream":
        assert found["n"].to_pylist() == wanted["n"].to_pylist()
    by = [("_segment", "ascending"), ("_offset", "ascending")]
    columns = ["k", "n", "at", "_segment", "_offset", "_clock"]
    assert found.select(columns).sort_by(by).to_pylist() == (
        wanted.select(columns).sort_by(by).to_pylist()
    )
    for segment in set(found["_segment"].to_pylist()):
        mine = found.filter(pc.equal(pc.field("_segment"), segment))["_offset"].to_pylist()
        assert order == "none" or mine == sorted(mine)


@pytest.mark.release
def test_several_streams_are_read_in_write_order(connect: Any, store: programs.StreamStore) -> None:
    store.create_stream("s/other", routing_key="k")
    for batch in range(4):
        store.append(("s/in", "s/other")[batch % 2], rows(connect, 10 * batch, 10))
    frame = read(["s/in", "s/other"], columns=["n"], spark=connect)
    assert [row.n for row in frame.collect()] == list(range(40))
    assert frame.columns == ["n", "_stream", "_segment", "_offset", "_clock"]


@pytest.mark.release
def test_a_reader_consumes_to_streams_tables_and_parquet_exactly_once(
    connect: Any, store: programs.StreamStore
) -> None:
    store.append("s/in", rows(connect, 0, 60).select("k", "n"))
    store.create_stream("s/out", routing_key="k")
    store.create_reader_group("g", ["s/in"])
    with Reader(connect, "g") as reader:
        batch = next(reader)
        batch.write("stream:s/out", batch.events.where(F.col("n") >= 30))
    for batch in store.reader("g"):
        late = batch.events.where(F.col("n") >= 30)
        batch.commit({"stream:s/out": late, "parquet:late": late, "parquet:k partition_by=k": late})
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(30, 60))
    root = Path(store.settings.output_roots[0])
    for name, columns in (("late", ["k", "n"]), ("k", ["n"])):
        tables = [pq.ParquetFile(file).read() for file in (root / name).rglob("*.parquet")]
        assert {tuple(set(one.column_names) & {"k", "n"}) for one in tables} == {tuple({*columns})}
        assert sorted(n for one in tables for n in one["n"].to_pylist()) == list(range(30, 60))


@pytest.mark.release
def test_rows_without_a_key_are_refused_with_an_example_or_kept(
    connect: Any, store: programs.StreamStore
) -> None:
    frame = connect.range(10).selectExpr("IF(id = 7, NULL, 'a') AS k", "id AS n")
    with raises('bad_rows 1 {"k":null,"n":7} on_missing_key'):
        store.append("s/in", frame)
    store.update_stream("s/in", on_missing_key="quarantine")
    assert store.append("s/in", frame).rejected == 1
    assert store.read("s/in.rejected")["row"].to_pylist() == ['{"k":null,"n":7}']


@pytest.mark.release
def test_keys_that_were_erased_from_a_stream_are_refused_by_one_that_refuses_them(
    connect: Any, store: programs.StreamStore
) -> None:
    store.erase("s/in", "asked", keys=["key 3"], dry_run=False)
    store.update_stream("s/in", refuse_erased="yes")
    with raises("key_erased 2 k s/in"):
        store.append("s/in", rows(connect, 0, 14))
    assert store.append("s/in", rows(connect, 0, 14).where("n % 7 <> 3")).events == 12


def test_stores_outputs_and_files_are_read_and_written_over_connect(
    connect: Any, store: programs.StreamStore
) -> None:
    Path(store.settings.input_roots[0], "rows.csv").write_text("k,n\na,1\nb,2\na,3\n")
    assert store.ingest("s/in", ["rows.csv"], engine="spark")["events"] == 3
    store.define_adjunct_store("s/newest", "s/in", key="k")
    assert store.adjunct(adjunct_stores=["s/newest"])["built"][0]["keys"] == 2
    store.create_stream("s/other", routing_key="k")
    store.append("s/other", connect.createDataFrame([("a",), ("c",)], "k string"))
    store.create_reader_group("g", ["s/other"])
    with store.reader("g", adjuncts=["s/newest"]) as reader:
        batch = next(reader)
        joined = batch.adjuncts.enrich(batch.events, "s/newest", "k", prefix="now_").select(
            "k", "now_n"
        )
        batch.commit({"parquet:out": joined})
    assert sorted(map(tuple, output(connect, "out", "g").select("k", "now_n").collect())) == [
        ("a", 3), ("c", None)
    ]  # fmt: skip


@pytest.mark.release
def test_a_server_that_tries_tasks_twice_at_once_writes_no_folders(
    connect: Any, store: programs.StreamStore
) -> None:
    store.append("s/in", rows(connect, 0, 6))
    store.create_reader_group("g", ["s/in"])
    connect.conf.set("spark.sql.legacy.setCommandRejectsSparkCoreConfs", "false")
    connect.conf.set("spark.speculation", "true")
    try:
        with store.reader("g") as reader:
            batch = next(reader)
            with raises("setting_invalid spark.speculation"):
                batch.write("parquet:late", batch.events)
            batch.commit()
    finally:
        connect.conf.unset("spark.speculation")


def test_functions_are_found_in_folders_of_which_one_is_in_another(
    connect: Any, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "searched.py").write_text("N = 7\n")
    (tmp_path / "inner" / "deeper").mkdir()  # a package without a file
    (tmp_path / "inner" / "deeper" / "still.py").write_text("N = 8\n")
    search(connect, [str(tmp_path), str(tmp_path / "inner"), str(tmp_path)])

    def found(batches: Any) -> Any:
        import pyarrow as pa
        import searched  # type: ignore[import-not-found]
        from deeper import still  # type: ignore[import-not-found]

        yield pa.RecordBatch.from_pydict({"n": [searched.N, still.N]})

    rows = connect.range(0, 1, 1, 1).mapInArrow(found, "n long").collect()
    assert [row.n for row in rows] == [7, 8]
