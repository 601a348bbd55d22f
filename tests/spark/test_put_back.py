"""Events that a consumer rejected are put back once, by a group that is nobody else's."""

from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tests.raises import raises
from tests.spark.installation import Installation
from weir.consumers.outputs import Output
from weir.spark.consumers.parquet_output import output_frame
from weir.spark.consumers.put_back import put_back


def test_rejected_events_are_put_back_once_after_the_mend_in_the_order_of_their_keys(
    weir: Installation,
) -> None:
    stream = weir.create(segments=2)
    at = datetime(2024, 3, 31, 1, 30, 0, 123456)
    schema = "k string, n long, price decimal(10,2), at timestamp_ntz, more struct<x: int>"
    rows = [(f"key {n % 3}", n, Decimal(n) / 4, at, None) for n in range(12)]
    weir.append(stream, weir.spark.createDataFrame(rows, schema))
    group, other = weir.group(stream), weir.group(stream, name="other")
    bad = F.col("n").isin(3, 4, 6, 9)

    def picky(events: DataFrame) -> DataFrame:
        failure = F.when(bad, F.raise_error(F.lit("no")).cast("long")).otherwise(F.col("n"))
        return events.withColumn("n", failure)

    options = {"on_error": "quarantine"}
    assert weir.consumer(group, picky, "parquet:x places=yes", **options).run()["rejected"] == 4
    assert weir.consumer(other, picky, "parquet:y", **options).run()["rejected"] == 4
    parquet = Output.parse("parquet:x places=yes", weir.settings.output_roots)
    with raises("batch_failed group readers-put-back no"):
        put_back(weir.opened, group, "one", picky, [parquet], {})
    seen: list[int] = []

    def mended(events: DataFrame, up_to: int = 0) -> DataFrame:
        seen.extend(row.n for row in events.collect() if row.n < up_to)
        return events

    for _ in range(2):
        put_back(weir.opened, group, "one", mended, [parquet], {"up_to": 100})
    assert sorted(seen) == [3, 4, 6, 9], "each once, and not those of the other group"
    assert [n for n in seen if n % 3 == 0] == [3, 6, 9], "a key keeps its order"
    of = partial(output_frame, weir.spark, weir.database, weir.settings, "x")
    found = of(group).unionByName(of(f"{group}-put-back"))
    columns = ["k", "n", "price", "at", "more", "_segment", "_offset"]
    rows = [tuple(row) for row in found.select(*columns).orderBy("n").collect()]
    there = weir.frame(stream).select(*columns).orderBy("n").collect()
    assert rows == [tuple(row) for row in there]
    with raises("group_not_found nobody"):
        put_back(weir.opened, "nobody", "one", mended, [parquet], {})
    long = weir.group(stream, name="g" * 60)
    with raises(f"name_invalid {long} long"):
        put_back(weir.opened, long, "one", mended, [parquet], {})


@pytest.mark.release
def test_the_group_that_puts_back_gets_new_streams_and_is_nobody_elses(weir: Installation) -> None:
    first, second = weir.create(), weir.create("s/second")
    weir.put(first, [("a", 1)])
    weir.put(second, [("b", 10)])
    group = weir.group(first, second)
    weir.group(first, name="other-put-back")
    options: dict[str, Any] = {"on_error": "quarantine"}
    fail = F.when(F.col("n") < 10, F.raise_error(F.lit("no")).cast("long")).otherwise(F.col("n"))

    def mended(both: dict[str, DataFrame]) -> DataFrame:
        return both[str(first)].unionByName(both[str(second)])

    def picky(both: dict[str, DataFrame]) -> DataFrame:
        return mended(both).withColumn("n", fail)

    parquet = Output.parse("parquet:x", weir.settings.output_roots)
    for stream, n in ((first, 1), (second, 2)):  # the second has no rejected events at first
        if stream == second:
            weir.put(second, [("b", 2)])
        assert weir.consumer(group, picky, "parquet:x", **options).run()["rejected"] == 1
        put_back(weir.opened, group, "one", mended, [parquet], {})
        found = output_frame(weir.spark, weir.database, weir.settings, "x", f"{group}-put-back")
        assert sorted(row.n for row in found.collect()) == list(range(1, n + 1))
    other = weir.group(first, name="other")
    weir.put(first, [("c", 3)])
    weir.consumer(other, lambda e: e.withColumn("n", fail), "parquet:y", **options).run()
    with raises("group_exists other-put-back s/events other"):
        put_back(weir.opened, other, "one", mended, [parquet], {})
