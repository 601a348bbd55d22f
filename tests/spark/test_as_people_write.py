"""Consumers as people write them: the first function that comes to mind works for every output."""

import contextlib
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.spark.installation import PLACE, Installation, parquet_rows
from weir.model.names import StreamName, stream_name
from weir.spark.consumers.parquet_output import output_frame
from weir.spark.consumers.reader import Reader
from weir.spark.failures.causes import sentence


def large(events: DataFrame, threshold: int = 20) -> DataFrame:
    """The first function that anybody writes."""
    return events.where(events.n >= threshold)


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Thirty events in three segments, and a stream for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 7}", n) for n in range(30)])
    return stream


def table(test_database: TestDatabase, columns: str) -> str:
    """A table into which Weir may insert."""
    execute(
        test_database.owner_dsn,
        f"CREATE TABLE public.large ({columns});"
        "GRANT INSERT ON public.large TO weir_publisher; GRANT SELECT ON public.large TO weir_jobs",
    )
    return "table:public.large"


def columns_of(weir: Installation, output: str) -> list[str]:
    """The columns of a Parquet output."""
    ((path,),) = weir.query("SELECT path FROM weir.parquet_outputs WHERE output = :o", o=output)
    return weir.spark.read.parquet(path).columns


def test_what_events_where_returns_goes_to_every_kind_of_output(
    weir: Installation, test_database: TestDatabase, stream: StreamName
) -> None:
    outputs = ["stream:s/out", "parquet:large", table(test_database, "k text, n bigint")]
    weir.consumer(weir.group(stream), large, *outputs).run()
    wanted = list(range(20, 30))
    assert sorted(weir.check(stream_name("s/out"))["n"]) == wanted
    assert parquet_rows(weir, "readers", "large") == wanted
    assert columns_of(weir, "large") == ["k", "n"]
    assert [n for (n,) in weir.query("SELECT n FROM public.large ORDER BY n")] == wanted


@pytest.mark.release
def test_places_are_written_where_they_are_asked_for(
    weir: Installation, test_database: TestDatabase, stream: StreamName
) -> None:
    to = table(test_database, "k text, n bigint, _segment bigint, _offset bigint")
    weir.consumer(weir.group(stream), large, "parquet:large places=yes", to).run()
    assert columns_of(weir, "large") == ["k", "n", *PLACE]
    facts = weir.facts(stream)
    there = [tuple(row) for row in facts[facts.n >= 20][["n", "_segment", "_offset"]].values]
    found = weir.query("SELECT n, _segment, _offset FROM public.large")
    assert sorted(tuple(row) for row in found) == sorted(there)
    chosen = weir.group(stream, name="chosen")
    weir.consumer(chosen, lambda e: e.select("n", "_offset"), "parquet:chosen").run()
    assert columns_of(weir, "chosen") == ["n", "_offset"]


WRONG = {
    "parquet:large compression=rar": "output_invalid 'rar' zstd",
    "parquet:large rows_per_file=x": "output_invalid rows_per_file 'x'",
    "parquet:large color=red": "output_invalid parquet:large 'color=red' places",
    "parquet:large places=maybe": "output_invalid places 'maybe' yes no",
    "parquet:large places=yes places=no": "output_invalid 'places=no' once",
    "stream:s/out places=yes": "output_invalid stream:s/out 'places=yes' no options",
}


@pytest.mark.release
@pytest.mark.parametrize("output", WRONG)
def test_options_that_an_output_does_not_have_are_refused_by_name(
    weir: Installation, output: str
) -> None:
    with raises(WRONG[output]):
        weir.consumer("readers", large, output)


@pytest.mark.release
def test_a_consumer_has_parameters_for_its_function(weir: Installation, stream: StreamName) -> None:
    group = weir.group(stream)
    weir.consumer(group, large, "parquet:large", parameters={"threshold": 28}).run()
    assert parquet_rows(weir, group, "large") == [28, 29]


@pytest.mark.release
@pytest.mark.parametrize(
    ("function", "parameters", "says"),
    [
        (large, {"treshold": 28}, "parameters_invalid large 'treshold'"),
        (lambda e, most: e, {}, "parameters_invalid 'most'"),
    ],
)
def test_parameters_that_the_function_does_not_take_are_refused_before_it_is_called(
    weir: Installation, function: Any, parameters: dict[str, Any], says: str
) -> None:
    with raises(says):
        weir.consumer("readers", function, "parquet:large", parameters=parameters)


@pytest.mark.release
def test_a_consumer_and_a_reader_have_a_size_of_batch_of_their_own(
    weir: Installation, stream: StreamName
) -> None:
    for n in range(30, 60, 10):
        weir.put(stream, [(f"key {i % 7}", i) for i in range(n, n + 10)])
    small, whole = weir.group(stream, name="small"), weir.group(stream, name="whole")
    for options in ({"batch_events": 10}, {"batch_files": 1}, {"batch_bytes": 1}):
        group = weir.group(stream, name=f"by-{min(options).replace('_', '-')}")
        done = weir.consumer(group, large, "parquet:large", **options).run()
        assert (done["events"], len(done["batches"]) > 3) == (60, True), options
    assert len(weir.consumer(whole, large, "parquet:whole").run()["batches"]) == 1
    with Reader(weir.spark, small, batch_files=1, installation=weir.opened) as reader:
        sizes = []
        for batch in reader:
            sizes.append(batch.size)
            batch.commit()
    assert (sum(sizes), len(sizes) > 3) == (60, True)
    with raises("argument_invalid batch_files -1"):
        Reader(weir.spark, small, batch_files=-1, installation=weir.opened)


@pytest.mark.release
def test_a_batch_that_fails_is_read_again_as_often_as_the_consumer_says(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    left = [ConnectionError("away"), ValueError("not now")]

    def unlucky(events: DataFrame) -> DataFrame:
        if left:
            raise left.pop()
        return large(events)

    with raises("batch_failed not now"):
        weir.consumer(group, unlucky, "parquet:large").run()
    left.append(ValueError("not now"))
    weir.consumer(group, unlucky, "parquet:large", retries=2).run()
    assert parquet_rows(weir, group, "large") == list(range(20, 30))
    weir.put(stream, [("a", 100)])
    mistakes = []

    def mistaken(events: DataFrame) -> DataFrame:
        mistakes.append(1)
        return events.nowhere()  # type: ignore[operator, no-any-return]

    with raises("batch_failed"):
        weir.consumer(group, mistaken, "parquet:large", retries=5).run()
    assert len(mistakes) == 1, "a mistake in the program is not tried again"


def test_a_table_that_is_upserted_has_the_last_event_of_each_key(
    weir: Installation, test_database: TestDatabase, stream: StreamName
) -> None:
    execute(
        test_database.owner_dsn,
        "CREATE TABLE public.latest (k text PRIMARY KEY, n bigint);"
        "GRANT SELECT, INSERT, UPDATE ON public.latest TO weir_publisher;"
        "GRANT SELECT ON public.latest TO weir_jobs",
    )
    group = weir.group(stream)
    to = "table:public.latest mode=upsert key=k"
    weir.put(stream, [(f"key {n % 7}", n) for n in range(30, 40)])
    weir.consumer(group, lambda events: events.select("k", "n"), to).run()
    weir.put(stream, [(f"key {n % 3}", n) for n in range(40, 50)])
    # A shuffle loses the order of the rows, but not their places.
    weir.consumer(group, lambda events: events.repartition(3, "n"), to).run()
    wanted = {f"key {n % 7}": n for n in range(40)} | {f"key {n % 3}": n for n in range(40, 50)}
    assert dict(map(tuple, weir.query("SELECT k, n FROM public.latest"))) == wanted


@pytest.mark.release
@pytest.mark.parametrize(
    ("output", "order", "says"),
    [
        ("table:public.other mode=upsert key=n", "segment", "order_unknown n k newest"),
        ("table:public.other mode=upsert key=n,k", "none", "order_unknown no order"),
        ("table:public.other mode=upsert key=n,k", "segment", ""),
        ("table:public.other mode=upsert key=n newest=at", "none", ""),
        ("table:public.other mode=upsert key=n newest=nn", "none", "column_unknown 'nn'"),
        ("table:public.other mode=upsert", "none", "output_invalid upsert"),
        ("table:public.other mode=replace key=n,", "none", "output_invalid key 'n,'"),
    ],
)
def test_an_upsert_whose_last_row_is_not_known_is_refused_before_anything_is_read(
    weir: Installation, test_database: TestDatabase, output: str, order: str, says: str
) -> None:
    execute(
        test_database.owner_dsn,
        "CREATE TABLE public.other (k text NOT NULL, n bigint NOT NULL, at bigint NOT NULL);"
        "CREATE UNIQUE INDEX ON public.other (n); CREATE UNIQUE INDEX ON public.other (k, n);"
        "GRANT SELECT, INSERT, UPDATE ON public.other TO weir_publisher",
    )
    group = weir.group(weir.create())
    with raises(says) if says else contextlib.nullcontext():
        weir.consumer(group, large, output, order=order).run()


@pytest.mark.release
def test_an_upsert_is_refused_where_events_of_one_key_have_no_common_order(
    weir: Installation, test_database: TestDatabase, stream: StreamName
) -> None:
    execute(
        test_database.owner_dsn,
        "CREATE TABLE public.latest (k text PRIMARY KEY, n bigint NOT NULL);"
        "GRANT SELECT, INSERT, UPDATE ON public.latest TO weir_publisher;"
        "GRANT SELECT ON public.latest TO weir_jobs",
    )
    to = "table:public.latest mode=upsert key=k"

    def union(events: dict[str, DataFrame]) -> DataFrame:
        return reduce(DataFrame.union, (frame.select("k", "n") for frame in events.values()))

    def lower(events: DataFrame) -> DataFrame:
        return events.select(F.lower("k").alias("k"), "n")

    other, spread = weir.create("s/other"), weir.create("s/spread", on_missing_key="spread")
    both = weir.group(stream, other, name="both")
    with raises(f"order_unknown 2 streams {stream} {other} newest"):
        weir.consumer(both, union, to).run()
    with raises(f"order_unknown {spread} spreads newest"):
        weir.consumer(weir.group(spread, name="spread"), lower, to).run()
    with raises(f"order_unknown 'k' {stream} newest"):
        weir.consumer(weir.group(stream, name="lower"), lower, to).run()
    assert weir.query("SELECT * FROM public.latest") == []
    weir.put(other, [("key 1", 50)])
    weir.consumer(both, union, f"{to} newest=n").run()
    assert len(weir.query("SELECT * FROM public.latest")) == 7


def test_a_partitioned_output_is_read_as_it_was_written_and_only_what_counts(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)

    def by_day(events: DataFrame) -> DataFrame:
        day = F.date_add(F.lit("2024-02-28").cast("date"), (events.n % 3).cast("int"))
        return events.select("n", day.alias("day"), F.lpad("n", 5, "0").alias("zip code"))

    to = "parquet:days partition_by=day,group compression=zstd rows_per_file=3"

    def with_group(events: DataFrame) -> DataFrame:
        return by_day(events).withColumn("group", F.col("zip code")).where("n <> 29")

    weir.consumer(group, with_group, to).run()
    root = Path(weir.settings.output_roots[0])
    files = [path for path in root.rglob("*.parquet") if "day=2024-02-29" in str(path)]
    assert files
    assert all("group=000" in str(path) for path in files)
    assert {pq.read_metadata(path).row_group(0).column(0).compression for path in files} == {"ZSTD"}
    (root / files[0].relative_to(root).parts[0] / "group=readers/batch=1.9/attempt=1").mkdir(
        parents=True
    )
    weir.put(stream, [("a", 29)])
    weir.consumer(group, with_group, to).run()  # a batch without a row
    weir.put(stream, [("a", 30)])
    weir.consumer(group, lambda events: by_day(events).drop("zip code"), "parquet:days").run()
    found = output_frame(weir.spark, weir.database, weir.settings, "parquet:days", group)
    assert dict(found.dtypes) == {
        "n": "bigint", "zip code": "string", "day": "date", "group": "string",
    }  # fmt: skip
    days = [date(2024, 2, 28), date(2024, 2, 29), date(2024, 3, 1)]
    wanted: list[tuple[int, date, str | None, str | None]] = [
        (n, days[n % 3], f"{n:05}", f"{n:05}") for n in range(29)
    ]
    wanted.append((30, days[0], None, None))
    rows = found.select("n", "day", "zip code", "group").orderBy("n").collect()
    assert [tuple(row) for row in rows] == wanted
    with raises("output_not_found parquet:nights"):
        output_frame(weir.spark, weir.database, weir.settings, "nights", group)


@pytest.mark.release
@pytest.mark.parametrize(
    ("function", "option", "says"),
    [
        (large, "day", "column_unknown 'day' k, n"),
        (lambda e: e.withColumn("x", e.n / 3), "x", "column_type_differs 'x' double"),
        (lambda e: e.withColumn("Batch", e.n), "n", "column_name_reserved 'Batch'"),
    ],
)
def test_columns_that_can_not_name_folders_are_refused(
    weir: Installation, stream: StreamName, function: Any, option: str, says: str
) -> None:
    with raises(says):
        weir.consumer(weir.group(stream), function, f"parquet:x partition_by={option}").run()


@pytest.mark.release
def test_an_empty_text_that_names_a_folder_is_as_null(
    weir: Installation, stream: StreamName
) -> None:
    def kinds(events: DataFrame) -> DataFrame:
        kind = F.when(events.n % 3 == 0, "").when(events.n % 3 == 1, "a")
        return events.select("n", kind.alias("kind"))

    group = weir.group(stream)
    weir.consumer(group, kinds, "parquet:kinds partition_by=kind").run()
    found = output_frame(weir.spark, weir.database, weir.settings, "kinds", group)
    rows = found.select("n", "kind").orderBy("n").collect()
    assert [tuple(row) for row in rows] == [(n, [None, "a", None][n % 3]) for n in range(30)]


@pytest.mark.release
def test_what_java_threw_is_said_without_names_of_its_objects(weir: Installation) -> None:
    jvm: Any = weir.spark._jvm
    with pytest.raises(Py4JJavaError) as thrown:
        jvm.java.util.Optional.empty().get()
    assert sentence(thrown.value) == "No value present"
