"""The adjunct stores of a batch as DataFrames: read, and joined with its events."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    DataType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weir.adjunct.pins import Pin
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.engine import Adjuncts
from weir.consumers.store_parts import KEY, columns_of, joined_on, joined_values
from weir.errors import InvalidInput
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.spark.adjuncts.as_of import join_as_of
from weir.spark.adjuncts.read import current_frame, history_frame
from weir.spark.base.exact import quoted
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.stored_columns import spark_type
from weir.spark.failures.lost_files import saying_why

_HINTS = {"broadcast": "broadcast", "partitioned": "shuffle_hash"}


@dataclass(frozen=True, eq=False)
class SparkAdjuncts(Adjuncts[DataFrame]):
    """The stores of a batch: by name the DataFrame of the version that the batch is read with.

    Its columns are `_weir_key`, those of the value, and `_clock`, the clock of the key's last
    change. A small one is broadcast by whatever join it is used in.
    """

    app: Installation
    pins: Mapping[str, Pin]
    manager: AdjunctStoreManager

    def __getitem__(self, name: str) -> DataFrame:
        pin = self._pin(name)
        spark, warehouse = self.app.spark, self.app.settings.warehouse
        if pin.version is None:
            rows = spark.createDataFrame([], self._empty(pin))
        else:
            with saying_why(self.app.database, self.app.settings):
                rows = current_frame(spark, warehouse, pin.version)
        seen: DataFrame = self.manager.stored(name, rows)
        return seen.hint("broadcast") if self._hint(pin) == "broadcast" else seen

    def enrich(
        self,
        events: DataFrame,
        name: str,
        on: str | Column,
        how: str = "left",
        *,
        as_of: bool | str = False,
        valid_from: str = "",
        prefix: str = "",
    ) -> DataFrame:
        """Return the events with the value columns of a store. See `Adjuncts`."""
        pin = self._pin(name)
        if valid_from and not as_of:
            raise InvalidInput(
                "argument_invalid",
                f"valid_from is {valid_from!r}, but as_of is not given; name the column with the "
                "time of the events.",
            )
        rows = self._history(pin, valid_from) if as_of else self[name]
        there = [one for one in rows.columns if not as_of or one not in _HISTORY]
        values = joined_values(name, how, events.columns, there, prefix)
        key = _as_key(events, on, rows.schema, name)
        if not as_of:
            return _join(events, rows, key, values, how, self._hint(pin), prefix)
        time_of = F.col("_clock") if as_of is True else _micros(events, str(as_of), "the events")
        joined = join_as_of(
            events, rows, key=key, time=time_of, values=values, order=["_clock", "_seq"], how=how,
            hint=self._hint(pin),
        )  # fmt: skip
        return joined.toDF(*events.columns, *[prefix + value for value in values])

    def _hint(self, pin: Pin) -> str:
        return _HINTS[pin.version.layout] if pin.version else "broadcast"

    def _empty(self, pin: Pin) -> StructType:
        """Return the columns of an empty table: those of the newest version; before the first one,
        those that it will have, as far as the columns of the stream are known."""
        fields = columns_of(self.app.database, pin.store)
        return StructType.fromJson({"type": "struct", "fields": fields}).add("_clock", "long")

    def _history(self, pin: Pin, valid_from: str) -> DataFrame:
        """Return the changes of a store with `_weir_time` and `_deleted`, as far as an as-of join
        of the batch needs them."""
        name, version = pin.store.name, pin.version
        if pin.store.configuration.history is None:
            raise InvalidInput(
                "join_invalid",
                f"adjunct store {name} keeps no history, so nobody knows what held earlier; "
                f"{do('update_adjunct_store', adjunct_store=name, history='AGE')}.",
            )
        if version is None:
            rows = self[name].withColumns({"_seq": F.lit(0), "_deleted": F.lit(False)})
        else:
            app = self.app
            # A value may hold from long before it was committed, so all changes are needed then.
            since = 0 if valid_from else pin.since or 0
            warehouse = app.settings.warehouse
            with saying_why(app.database, app.settings):
                rows = history_frame(app.spark, app.database, warehouse, version, since)
            rows = self.manager.stored(name, rows)
        time_of = F.col("_clock")
        if valid_from:  # a deletion has no value and so no such time: it holds from its commit on
            begins = _micros(rows, valid_from, f"adjunct store {name}")
            time_of = F.when(F.col("_deleted"), F.col("_clock")).otherwise(begins)
        return rows.withColumn("_weir_time", time_of)


_HISTORY = ("_seq", "_deleted", "_weir_time")


def _join(
    events: DataFrame, rows: DataFrame, key: Column, values: list[str], how: str, hint: str,
    prefix: str,
) -> DataFrame:  # fmt: skip
    right = rows.select(
        F.col(KEY),
        *[c.alias(prefix + n) for c, n in zip(quoted(values), values, strict=True)],
    )
    names = events.columns
    left = events.select("*", key.alias("_weir_event_key"))
    joined = left.join(right.hint(hint), F.col("_weir_event_key") == F.col(KEY), how)
    return joined.select(*quoted([*names, *[prefix + value for value in values]]))


def _as_key(events: DataFrame, on: str | Column, schema: StructType, name: str) -> Column:
    """Return the expression of the key in the type of the store's keys. Raises InvalidInput for
    another type, and for what the events don't have."""
    if isinstance(on, str):
        on = quoted([on])[0] if on in events.columns else _computed(events, on, name)
    try:
        given: DataType = events.select(on.alias("key")).schema["key"].dataType
    except AnalysisException as error:
        raise InvalidInput(
            "join_invalid",
            f"the key on which events are joined with adjunct store {name} can't be computed from "
            f"them ({str(error).splitlines()[0]}); name a column of the events.",
        ) from None
    wanted = schema[KEY].dataType
    if given == wanted:
        return on
    if isinstance(given, NumericType) and isinstance(wanted, NumericType):
        return on.try_cast(wanted)
    raise InvalidInput(
        "column_type_unsupported",
        f"the keys of adjunct store {name} are of type {wanted.simpleString()}, but on is of type "
        f"{given.simpleString()}; cast it.",
    )


def _computed(events: DataFrame, on: str, name: str) -> Column:
    """Return a transform of the events, which is computed in tasks."""
    computation = joined_on(on, to_arrow_schema(events.schema), name)
    names, schema = computation.columns, computation.schema

    def keys(rows: pa.Array) -> pa.Array:  # of which Spark reads the types
        table = pa.Table.from_struct_array(rows).cast(schema)  # whatever the session has for texts
        return computation.over(table).values.combine_chunks()

    with with_own_code(events.sparkSession):
        computed = arrow_udf(keys, spark_type(computation.kind))  # type: ignore[call-overload]
        found: Column = computed(F.struct(*quoted(names)))
    return found


def _micros(frame: DataFrame, column: str, whose: str) -> Column:
    """Return a time in microseconds. Raises InvalidInput if the column is not a time."""
    found = frame.schema[column].dataType if column in frame.columns else None
    if isinstance(found, TimestampNTZType):  # without a time zone, it means UTC
        epoch = F.expr("timestamp_ntz '1970-01-01 00:00:00'")
        return F.timestamp_diff("MICROSECOND", epoch, quoted([column])[0])
    if not isinstance(found, TimestampType):
        what = "there is none" if found is None else f"it is a {found.simpleString()}"
        raise InvalidInput(
            "column_type_unsupported",
            f"an as-of join needs a timestamp in column {column} of {whose}, but {what}; name "
            "another column, or cast it.",
        )
    return F.unix_micros(quoted([column])[0])
