"""Joining events with adjunct stores, beside plain Spark on the same rows."""

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from benchmarks.data_path import ROWS, appender, opened, source
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.adjunct.pins import Pin
from weir.adjunct.stores import define_store, read_store
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.store_parts import KEY
from weir.controller.streams import create_stream
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.spark.adjuncts.as_of import join_as_of
from weir.spark.adjuncts.build import build_version
from weir.spark.adjuncts.manager import SparkAdjuncts
from weir.warehouse.paths import spark_path

KEYS = 200_000  # as many as the events have
STATIONS, HOURS = 1_000, 1_000  # the value of a station changes every hour
HOT_CHANGES, HOT_EVENTS = 10_000, 100_000


def _noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _store(setting: Setting, layout: str) -> tuple[SparkAdjuncts, str]:
    """Build a store with a row for each key of the events. Return the stores of a batch that has
    pinned its newest version, and the name of the store."""
    name = f"bench/{layout}-{setting.number()}"
    stream = stream_name(name)
    create_stream(setting.database, stream, routing_key="key", segments=4, request_id=name)
    rows = setting.spark.range(-KEYS // 2, KEYS // 2).select(
        F.concat(F.lit("key-"), "id").alias("key"),
        (F.rand(seed=3) * 100).alias("amount"),
        F.concat(F.lit("the name of "), "id").alias("name"),
    )
    app = opened(setting)
    appender(setting).append_frame(stream, rows, writer_id="bench", batch_id=name)
    configuration = AdjunctConfiguration(layout=layout)
    define_store(setting.database, name, stream, configuration, AdjunctDefinition(),
                 request_id=f"define {name}")  # fmt: skip
    version = build_version(app, name)
    store = setting.database.transaction(lambda c: read_store(c, name))
    pin = Pin(store, version.cut, version.clock, None, True, version)
    return SparkAdjuncts(app, {name: pin}, AdjunctStoreManager({name: name})), name


def _join(setting: Setting, layout: str) -> Figure:
    """Return the figure of joining 5 million events with a store of all their keys, beside plain
    Spark."""
    adjuncts, name = _store(setting, layout)
    version = adjuncts.pins[name].version
    assert version is not None
    events = source(setting)
    paths = [spark_path(setting.settings.warehouse, file.path) for file in version.files]
    hint = "broadcast" if layout == "broadcast" else "shuffle_hash"
    values = ["amount", "name"]

    def reference() -> None:
        table = setting.spark.read.parquet(*paths).select(KEY, *values).hint(hint)
        joined = events.join(table, events["key"] == table[KEY], "left")
        _noop(joined.select(*events.columns, *values))

    def ours() -> None:
        joined = adjuncts.enrich(events, name, "key", prefix="store_")
        _noop(joined.select(*events.columns, *[f"store_{value}" for value in values]))

    return Figure(
        f"adjunct/{layout}",
        f"5 million events joined with a store of {KEYS:,} keys, {layout}, beside plain Spark "
        "joining the same files with the same hint",
        ours,
        reference,
        limit=1.1,
        goal=1.0,
    )


def _events(setting: Setting, events: int, keys: int, hours: int) -> DataFrame:
    path = setting.folder / f"as-of-events-{events}-{keys}"
    if not path.exists():
        source(setting).limit(events).select(
            "id",
            F.concat(F.lit("station-"), F.pmod(F.xxhash64("id"), F.lit(keys))).alias("station"),
            F.floor(F.rand(seed=5) * hours * 3600).alias("time"),
            "value",
            "payload",
        ).repartition(4).write.parquet(str(path))
    return setting.spark.read.parquet(str(path))


def _changes(setting: Setting, changes: int, keys: int, hours: int) -> DataFrame:
    path = setting.folder / f"as-of-changes-{changes}-{keys}"
    if not path.exists():
        setting.spark.range(changes).select(
            F.concat(F.lit("station-"), F.col("id") % keys).alias("_weir_key"),
            F.floor(F.col("id") * hours * 3600 / changes).alias("_weir_time"),
            F.col("id").alias("_seq"),
            F.lit(False).alias("_deleted"),
            (F.rand(seed=6) * 100).alias("amount"),
            F.concat(F.lit("reading "), "id").alias("reading"),
        ).repartition(4).write.parquet(str(path))
    return setting.spark.read.parquet(str(path))


def _as_of(events: DataFrame, changes: DataFrame) -> Callable[[], None]:
    return lambda: _noop(
        join_as_of(
            events, changes, key=F.col("station"), time=F.col("time"),
            values=["amount", "reading"], order=["_seq"],
        )
    )  # fmt: skip


def as_of(setting: Setting) -> Figure:
    """Return the figure of an as-of join, beside the range join that a person writes. The range
    join takes each change until the next one of its key."""
    # A small run has a fifth of the events and of the stations. Each station keeps its changes,
    # because they decide what a range join costs.
    share = 1 if setting.full else 5
    count, stations = ROWS // share, STATIONS // share
    changed = stations * HOURS
    events = _events(setting, count, stations, HOURS)
    changes = _changes(setting, changed, stations, HOURS)
    by_key = Window.partitionBy("_weir_key").orderBy("_weir_time", "_seq")

    def reference() -> None:
        held = changes.withColumn("_until", F.lead("_weir_time").over(by_key))
        joined = events.join(
            held,
            (F.col("station") == F.col("_weir_key"))
            & (F.col("time") >= F.col("_weir_time"))
            & (F.col("_until").isNull() | (F.col("time") < F.col("_until"))),
            "left",
        )
        _noop(joined.select(*events.columns, "amount", "reading"))

    return Figure(
        "adjunct/as_of",
        f"{count:,} events with the value at their time, of {changed:,} changes of {stations:,} "
        "keys, beside a range join with lead()",
        _as_of(events, changes),
        reference,
        limit=0.5,
        goal=0.25,
    )


def as_of_skew(setting: Setting) -> Figure:
    """Return the figure of an as-of join in which all changes and all events have one key, beside
    the same of a thousand keys."""
    hours = HOT_CHANGES
    hot, spread = (
        _as_of(
            _events(setting, HOT_EVENTS, keys, hours), _changes(setting, HOT_CHANGES, keys, hours)
        )
        for keys in (1, STATIONS)
    )
    return Figure(
        "adjunct/as_of_skew",
        f"{HOT_EVENTS:,} events and {HOT_CHANGES:,} changes of one key, beside as many of "
        f"{STATIONS:,} keys",
        hot,
        spread,
        limit=3,
        goal=1.5,
    )


FIGURES = {
    "adjunct/broadcast": partial(_join, layout="broadcast"),
    "adjunct/partitioned": partial(_join, layout="partitioned"),
    "adjunct/as_of": as_of,
    "adjunct/as_of_skew": as_of_skew,
}
