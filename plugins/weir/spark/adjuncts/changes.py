"""Make changes of an adjunct store's keys from the events of its stream.

What is just a column is Spark's; transforms and functions are computed in tasks, over batches of
pyarrow. Where one fails the store's settings say what becomes of such events.
"""

import hashlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from weir.consumers.store_outcomes import Maker
from weir.consumers.store_parts import KEY, Part, Parts, is_struct
from weir.consumers.user_functions import load_function
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import LONGEST_KEY
from weir.model.schema import SEQ, Field, stored_name
from weir.settings import Settings
from weir.spark.base.exact import quoted
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.routing import routing_steps
from weir.spark.base.stored_columns import spark_type

HASH, CLOCK, VALUE, SOURCE = "_weir_hash", "_weir_clock", "_weir_value", "_weir_source"
FAILED, REASON, PLACE = "_weir_failed", "_weir_reason", "_weir_place"
_MADE_KEY, _MADE_VALUE, _DELETES = "_weir_k", "_weir_v", "_weir_d"


@dataclass(frozen=True)
class Changes:
    """Changes of keys: `frame` has `_weir_key` (null if it is null, or if the event failed),
    `_weir_hash`, `_weir_clock`, `_weir_seq`, `_weir_failed`, `_weir_reason` (what fails),
    `_weir_place` (segment and offset), `_weir_value` (a struct with the value columns; null: the
    key is deleted), and `_weir_source` unless the value is the whole event. What has the whole
    event names its columns as files of the stream do, so that they may be renamed (semantics
    5.5)."""

    frame: DataFrame
    parts: Parts

    @property
    def fields(self) -> list[Field]:
        """The columns of a version, in Spark's JSON form; those of events with their names in
        files."""
        return self.parts.fields

    @property
    def state(self) -> list[str]:
        """The columns that say what a key is now."""
        return [VALUE, *([SOURCE] if SOURCE in self.frame.columns else [])]

    @property
    def event(self) -> Column:
        """The whole event as a struct, also of one that fails."""
        return F.struct(
            *[F.col(self.state[-1])[stored_name(c)].alias(c["name"]) for c in self.parts.events]
        )


def code_of(definition: AdjunctDefinition, settings: Settings) -> str | None:
    """Return a hash of the files of a store's functions; None without functions."""
    if not definition.functions:
        return None
    found = hashlib.sha256()
    for name in definition.functions:
        function = load_function(name, settings.function_packages, settings.function_path)
        module = sys.modules[function.__module__]
        file = getattr(module, "__file__", None)
        found.update(name.encode() + b"\0" + (Path(file).read_bytes() if file else b""))
    return found.hexdigest()


def changes_of(
    events: DataFrame, parts: Parts, settings: Settings, *, known_keys: bool = False
) -> Changes:
    """Return the changes that events make.

    `events`: with the user's columns, `_clock`, `_weir_seq` and, of new events, `_segment` and
    `_offset`. `known_keys`: they have `_weir_key`, too, which is not computed again.
    """
    known = [part for part in (None if known_keys else parts.key, parts.value, parts.deletes)
             if part is not None]  # fmt: skip
    if all(part.plain for part in known):
        rows = _of_columns(events, parts, known_keys=known_keys)
    else:
        rows = _of_tasks(events, parts, settings, known_keys=known_keys)
    failed, whole = F.col(REASON).isNotNull(), _whole(parts.events)
    value = whole
    if parts.value is not None:
        value = made = F.col(_MADE_VALUE)
        if not is_struct(parts.value.type):
            value = F.when(made.isNotNull(), F.struct(made.alias("value")))
    places = all(name in rows.columns for name in ("_segment", "_offset"))
    frame = rows.select(
        F.when(~failed, F.col(_MADE_KEY)).alias(KEY),
        F.col("_clock").alias(CLOCK),
        F.col(SEQ),
        failed.alias(FAILED),
        F.col(REASON),
        *([F.struct("_segment", "_offset").alias(PLACE)] if places else []),
        F.when(failed | ~F.col(_DELETES), value).alias(VALUE),
        *([whole.alias(SOURCE)] if parts.value is not None else []),
    )
    frame = frame.withColumn(HASH, routing_steps(F.col(KEY).cast("string")))
    return Changes(frame, parts)


def _whole(fields: Sequence[Field]) -> Column:
    """Return the event as a struct, by the names that files of the stream have."""
    columns = quoted([field["name"] for field in fields])
    return F.struct(*[c.alias(stored_name(f)) for c, f in zip(columns, fields, strict=True)])


def _of_columns(events: DataFrame, parts: Parts, *, known_keys: bool) -> DataFrame:
    """Return the events with what is made of them, where that is just columns."""
    key, reason = F.col(KEY), F.lit(None).cast("string")
    if not known_keys:
        key = _column(parts.key).cast(spark_type(parts.key.type))
        if parts.key.type == "string":
            wrong = (F.octet_length(key) > F.lit(LONGEST_KEY)) | F.contains(key, F.lit("\0"))
            reason = F.when(wrong, F.lit(f"{parts.key.what} fails"))
    deletes = F.lit(False) if parts.deletes is None else _column(parts.deletes)
    value = [] if parts.value is None else [_column(parts.value).alias(_MADE_VALUE)]
    return events.select(
        "*", key.alias(_MADE_KEY), *value, F.coalesce(deletes, F.lit(False)).alias(_DELETES),
        reason.alias(REASON),
    )  # fmt: skip


def _column(part: Part) -> Column:
    assert part.plain is not None, part.what
    columns = [c.alias(n) for n, c in zip(part.plain, quoted([*part.plain.values()]), strict=True)]
    return columns[0] if "" in part.plain else F.struct(*columns)


def _of_tasks(
    events: DataFrame, parts: Parts, settings: Settings, *, known_keys: bool
) -> DataFrame:
    """Return the events with what is made of them in tasks."""
    names = [field["name"] for field in parts.events]
    key = events.schema[KEY].dataType if known_keys else spark_type(parts.key.type)
    value = [] if parts.value is None else [
        StructField(_MADE_VALUE, spark_type(parts.value.type))
    ]  # fmt: skip
    made = [
        StructField(_MADE_KEY, key), *value, StructField(_DELETES, BooleanType()),
        StructField(REASON, StringType()),
    ]  # fmt: skip
    work = partial(
        _task, parts, settings.function_packages, settings.function_path, names, events.columns
    )
    rows = events.select(F.struct(*quoted(events.columns)).alias("row"))
    with with_own_code(events.sparkSession):
        return rows.mapInArrow(work, StructType([*events.schema.fields, *made]))


def _task(
    parts: Parts, packages: Sequence[str], path: Sequence[str], events: Sequence[str],
    names: Sequence[str], batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:  # fmt: skip
    maker = Maker(parts, packages, path)
    for packed in batches:
        batch = pa.RecordBatch.from_arrays(packed.column(0).flatten(), list(names))
        keys = batch.column(KEY) if KEY in names else None
        made = maker.made(batch.select(list(events)), keys)
        more = [one for one in made if one is not None]
        yield pa.RecordBatch.from_arrays(
            [*batch.columns, *more], [*names, *(f"_{i}" for i in range(len(more)))]
        )
