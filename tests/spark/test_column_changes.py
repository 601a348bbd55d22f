"""Spark reads streams whose columns changed as pyarrow does, and appends to them (semantics
5.5)."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import weir as api
from tests.chance import cases, random_for
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.spark.installation import Installation, setting
from tests.world.columns import DEFAULTS, LARGE, WIDER, World, column, update
from tests.world.streams import Lane
from weir.consumers.outputs import Output
from weir.database.connection import Database
from weir.kernel.schema import to_arrow
from weir.model.names import StreamName
from weir.programs.opening import shared
from weir.settings import Settings
from weir.spark.consumers.put_back import put_back
from weir.spark.reads.source import WeirSource, register


def both(weir: Installation, stream: StreamName, order: str = "segment") -> pa.Table:
    """The events of a stream by Spark, after pyarrow has found the same."""
    known = shared(weir.settings).read(str(stream))
    frame = weir.frame(stream, order)
    assert all(not one.metadata for one in frame.schema.fields), "defaults are not handed on"
    found = frame.toArrow()
    key = [("_segment", "ascending"), ("_offset", "ascending")]
    assert found.sort_by(key).to_pylist() == known.sort_by(key).to_pylist()
    assert [(one.name, one.type) for one in found.schema] == [
        (one.name, one.type) for one in known.schema
    ]
    return known


def test_spark_reads_what_the_model_says_with_every_reader_of_it(weir: Installation) -> None:
    for case in range(cases(16)):
        world = World.made(weir.database, weir.settings, random_for("columns by spark", case))
        for _ in range(10):
            world.random.choice([world.append, world.change, world.change])()
        world.append()
        world.check()
        vectorized = "spark.sql.parquet.enableVectorizedReader"
        both(weir, world.lane.name, "none")
        weir.spark.conf.set(vectorized, "false")
        try:
            both(weir, world.lane.name, world.random.choice(["segment", "stream"]))
        finally:
            weir.spark.conf.unset(vectorized)


# A type, a wider one, values of a file of the first, and a condition that is true for all of them,
# but for no whole number, float or date that is nearest to its constant.
FILTERED: dict[str, tuple[str, str, list[Any], str]] = {
    "below": ("integer", "decimal(12,2)", [1, 1], "< 1.50"),
    "above": ("integer", "decimal(38,28)", [-1, -1], "> -1.50"),
    "far": ("integer", "decimal(12,2)", [1, 2], "< 3000000000"),
    "small": ("byte", "decimal(12,2)", [1, 1], "< 1.99"),
    "other": ("long", "decimal(38,18)", [7, 7], "!= 7.5"),
    "not": ("short", "decimal(38,18)", [7, 7], "NOT IN (7.5, 7.25)"),
    "long": ("integer", "long", [1, 2], "< 9223372036854775807"),
    "float": ("float", "double", [0.1, 0.1], "> 0.1D"),  # it is a little more
    "scale": ("decimal(5,2)", "decimal(30,5)", [Decimal("1.50"), Decimal("1.50")], "< 1.50001"),
    "date": ("date", "timestamp_ntz", [date(2024, 1, 1)] * 2, "< TIMESTAMP_NTZ '2024-01-01 01:00'"),
}  # fmt: skip


def test_no_filter_of_spark_leaves_out_rows_of_files_from_before_a_widening(
    weir: Installation,
) -> None:
    fields = [column("k", "string")]
    for name, (kind, *_) in FILTERED.items():
        fields += [column(name, kind), column(f"in {name}", f"struct<{kind}>")]
    stream = weir.create("s/filtered", segments=1, fields=fields)
    columns: dict[str, Any] = {"k": ["a", "b"]}
    for name, (_, _, values, _) in FILTERED.items():
        columns |= {name: values, f"in {name}": [{"x": one} for one in values]}
    weir.put(stream, pa.table(columns, schema=to_arrow(fields)))
    lane = Lane(weir.database, stream, 0)
    for name, (_, wide, *_) in FILTERED.items():
        update(lane, widen=[column(name, wide), column(f"in {name}", f"struct<{wide}>")])
    register(weir.spark)
    config = str(write_config(weir.settings))
    every = [f"{what} {condition}" for name, (*_, condition) in FILTERED.items()
             for what in (f"`{name}`", f"`in {name}`.x")]  # fmt: skip
    doors = {
        "frame": weir.frame(stream, "none"), "in order": weir.frame(stream, "stream"),
        "format": weir.spark.read.format("weir").option("config", config).load(str(stream)),
    }  # fmt: skip
    found = {door: frame.where(" AND ".join(every)).count() for door, frame in doors.items()}
    assert found == dict.fromkeys(doors, 2)


def test_a_default_is_read_in_the_widest_type_that_its_column_got(weir: Installation) -> None:
    stream = weir.create("s/defaults", segments=1, fields=[column("k", "string")])
    weir.put(stream, pa.table({"k": ["a"]}))
    lane = Lane(weir.database, stream, 0)
    wide = {name: [one for one in WIDER[name] if one not in LARGE][-1:] for name in WIDER}
    given = [name for name, kinds in wide.items() if kinds]
    update(lane, add=[column(name, name, DEFAULTS[name]) for name in given])
    weir.put(stream, pa.table({"k": ["b"]}))
    update(lane, widen=[column(name, wide[name][0]) for name in given])
    for order in ("none", "stream"):
        known = both(weir, stream, order).select(given).to_pylist()
        assert known[0] == known[1]
    with setting(weir.spark, {"spark.sql.parquet.enableVectorizedReader": "false"}):
        both(weir, stream, "none")


@pytest.mark.release
def test_spark_appends_under_the_names_of_now_and_rejects_rows_with_them(
    weir: Installation,
) -> None:
    fields = [column("k", "string"), column("a", "integer"), column("t", "timestamp")]
    stream = weir.create(
        "s/renamed", segments=2, fields=fields, event_time="t",
        on_missing_key="quarantine",
    )  # fmt: skip
    columns = "k string, a int, t timestamp"
    rows: list[Any] = [("x", 1, None), ("y", 2, None)]
    weir.append(stream, weir.spark.createDataFrame(rows, columns))
    changes = {"rename": {"k": "key", "a": "t", "t": "a"}, "add": [column("k", "string", "new")]}
    lane = World.made(weir.database, weir.settings, random_for("x")).lane
    lane.name = stream
    update(lane, **changes)
    after = weir.spark.sql(
        "SELECT * FROM VALUES ('x', 3, TIMESTAMP '2013-01-01', 'k'), "
        "(CAST(NULL AS STRING), 4, TIMESTAMP '2013-01-02', 'l') AS v (key, t, a, k)"
    )
    done = weir.append(stream, after)
    assert (done.events, done.rejected) == (1, 1)
    assert done.min_event_time == done.max_event_time == 1356998400000000
    found = both(weir, stream)
    seen = sorted((row["key"], row["t"], row["k"]) for row in found.to_pylist())
    assert seen == [("x", 1, "new"), ("x", 3, "k"), ("y", 2, "new")]
    segments = {(row["key"], row["_segment"]) for row in found.to_pylist()}
    assert len(segments) == 2, "a key stays in its segment"
    [rejected] = weir.frame(stream.rejected).select("row").collect()
    assert '"t":4' in rejected.row
    assert '"k":"l"' in rejected.row
    old = api.spark.read(str(stream), schema_version=1, spark=weir.spark, settings=weir.settings)
    assert old.columns[:3] == ["k", "a", "t"]
    assert sorted(row.a for row in old.collect()) == [1, 2, 3]
    register(weir.spark)
    config = str(write_config(weir.settings))
    read = weir.spark.read.format("weir").option("config", config).load(str(stream))
    seen = sorted((row.key, row.t, row.k) for row in read.collect())
    assert seen == [("x", 1, "new"), ("x", 3, "k"), ("y", 2, "new")]
    assert all(not one.metadata for one in read.schema.fields), "names in files are not handed on"
    with raises("column_type_differs 'a' integer timestamp"):
        weir.append(stream, weir.spark.createDataFrame([("x", 1)], "key string, a int"))


@pytest.mark.release
def test_streams_that_are_read_as_one_have_the_columns_that_they_have_now(
    weir: Installation,
) -> None:
    fields = [column("k", "string"), column("a", "integer")]
    streams = [weir.create(f"m/{i}", segments=1, fields=fields) for i in range(2)]
    for stream in streams:
        weir.append(stream, weir.spark.createDataFrame([("x", 1)], "k string, a int"))
    lane = World.made(weir.database, weir.settings, random_for("y")).lane
    lane.name = streams[0]
    update(lane, drop=["a"], add=[column("b", "integer", "7")])
    names = list(map(str, streams))
    found = api.spark.read(names, columns=["k", "a", "b"], spark=weir.spark, settings=weir.settings)
    assert [tuple(row)[:3] for row in found.collect()] == [("x", None, 7), ("x", 1, None)]


def test_the_format_reads_what_the_model_says(database: Database, settings: Settings) -> None:
    config = str(write_config(settings))
    for case in range(cases(16)):
        world = World.made(database, settings, random_for("columns by the format", case))
        for _ in range(10):
            world.random.choice([world.append, world.change, world.change])()
        source = WeirSource({"path": str(world.lane.name), "config": config})
        batch, query = source.reader(source.schema()), source.streamReader(source.schema())
        names = source.schema().names[:-3]
        world.append()
        known = shared(settings).read(str(world.lane.name), columns=names)
        batches = [b for part in batch.partitions() for b in batch.read(part)]
        found = pa.Table.from_batches(batches)
        assert found.select(known.column_names).to_pylist() == known.to_pylist()
        parts = query.partitions(world.lane.head(), world.lane.tail())
        assert [b for part in parts for b in query.read(part)] == batches


@pytest.mark.release
def test_a_rejected_event_is_put_back_under_the_names_of_now_as_a_read_gives_it(
    weir: Installation,
) -> None:
    fields = [column("k", "string"), column("a", "integer"), column("b", "integer")]
    fields += [column("f", "float"), column("d", "date"), column("w", "integer")]
    fields += [column("l", "array<float>"), column("m", "map<integer>")]
    stream = weir.create("p/s", segments=1, fields=fields)
    rows = [("x", 1, 2, 0.1, date(2024, 2, 29), -(2**31), [0.1, None], {7: None})]
    types = "k string, a int, b int, f float, d date, w int, l array<float>, m map<int, int>"
    weir.append(stream, weir.spark.createDataFrame(rows, types))
    group = weir.group(stream)

    def fails(events: DataFrame) -> DataFrame:
        return events.withColumn("a", F.raise_error(F.lit("no")).cast("int"))

    weir.consumer(group, fails, "parquet:x", on_error="quarantine").run()
    lane = World.made(weir.database, weir.settings, random_for("z")).lane
    lane.name = stream
    update(lane, rename={"a": "b", "b": "a"}, widen=[column("a", "long")])
    update(lane, add=[column("c", "string", "new")])
    update(lane, widen=[column("f", "double"), column("d", "timestamp_ntz")])
    wide = [column("w", "decimal(38,28)"), column("l", "array<double>")]
    update(lane, widen=[*wide, column("m", "map<decimal(12,2)>")])
    more = [("y", 3, 4, 0.1, datetime(2024, 2, 29, 1, 2, 3, 4), Decimal("1.5"), [0.1],
             {Decimal("7.5"): Decimal(1)}, "c")]  # fmt: skip
    types = "k string, b long, a int, f double, d timestamp_ntz, w decimal(38,28), l array<double>"
    types += ", m map<decimal(12,2), decimal(12,2)>, c string"
    weir.append(stream, weir.spark.createDataFrame(more, types))
    weir.consumer(group, fails, "parquet:x", on_error="quarantine").run()
    seen: list[Any] = []

    def mended(events: DataFrame) -> DataFrame:
        names = ["b", "a", "f", "d", "w", "l", "m", "c"]
        seen.extend(tuple(row) for row in events.select(names).orderBy("b").collect())
        return events

    output = Output.parse("parquet:x", weir.settings.output_roots)
    put_back(weir.opened, group, "one", mended, [output], {})
    assert seen == [
        (
            1,
            2,
            0.10000000149011612,
            datetime(2024, 2, 29),
            Decimal(-(2**31)),
            [0.10000000149011612, None],
            {Decimal(7): None},
            "new",
        ),
        (
            3,
            4,
            0.1,
            datetime(2024, 2, 29, 1, 2, 3, 4),
            Decimal("1.5"),
            [0.1],
            {Decimal("7.5"): Decimal(1)},
            "c",
        ),
    ]
