"""Consumers as people write them: tables that are upserted, and outputs with partitions."""

from datetime import date
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
from tests.spark.installation import Installation
from weir.model.names import StreamName
from weir.spark.consumers.parquet_output import output_frame
from weir.spark.failures.causes import sentence


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Thirty events in three segments, and a stream for results."""
    stream = weir.create(segments=3)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 7}", n) for n in range(30)])
    return stream


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
def test_what_java_threw_is_said_without_names_of_its_objects(weir: Installation) -> None:
    jvm: Any = weir.spark._jvm
    with pytest.raises(Py4JJavaError) as thrown:
        jvm.java.util.Optional.empty().get()
    assert sentence(thrown.value) == "No value present"
