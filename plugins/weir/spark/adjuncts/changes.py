"""Make changes of an adjunct store's keys from the events of its stream.

Everything is computed in a private session of Weir's. A SQL expression that fails in a row, or a
function that raises, gives a null outcome there: the store's settings say what becomes of such
rows.
"""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial, reduce
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    LongType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from weir.consumers.user_functions import load_function
from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.declared_columns import declared_columns
from weir.model.names import check_user_columns
from weir.model.schema import PLACES, SEQ, Field, stored_name, without_metadata
from weir.settings import Settings
from weir.spark.adjuncts.functions import DELETE_OUTCOME, outcomes_of
from weir.spark.base.exact import quoted
from weir.spark.base.keys import is_unusable
from weir.spark.base.routing import routing_steps
from weir.spark.users.declared_types import check_types
from weir.spark.users.expressions import check_expression, with_outcome

KEY, HASH, CLOCK, VALUE, SOURCE = (
    "_weir_key", "_weir_hash", "_weir_clock", "_weir_value", "_weir_source",
)  # fmt: skip
FAILED, REASON, PLACE = "_weir_failed", "_weir_reason", "_weir_place"
_KEY_OUTCOME, _VALUE_OUTCOME = "_weir_k", "_weir_v"
_KEY_TYPES = (
    StringType, BooleanType, IntegralType, DecimalType, DateType, TimestampType, TimestampNTZType,
)  # fmt: skip


@dataclass(frozen=True)
class Changes:
    """Changes of keys: `frame` has `_weir_key` (null if it is null, or if the event failed),
    `_weir_hash`, `_weir_clock`, `_weir_seq`, `_weir_failed`, `_weir_reason` (what fails),
    `_weir_place` (segment and offset), `_weir_value` (a struct with the value columns; null: the
    key is deleted), and `_weir_source` unless the value is the whole event. What has the whole
    event names its columns as files of the stream do, so that they may be renamed (semantics 5.5).
    `columns`: those of the events."""

    frame: DataFrame
    key: StructField
    values: list[StructField]
    columns: Sequence[Field]

    @property
    def fields(self) -> list[dict[str, Any]]:
        """The columns of a version, in Spark's JSON form; those of events with their names in
        files."""
        found = [field.jsonValue() for field in (self.key, *self.values)]
        if SOURCE in self.frame.columns:
            return found
        stored = {one["name"]: one["stored"] for one in self.columns if "stored" in one}
        return [
            {**one, "stored": stored[one["name"]]} if one["name"] in stored else one
            for one in found
        ]

    @property
    def state(self) -> list[str]:
        """The columns that say what a key is now."""
        return [VALUE, *([SOURCE] if SOURCE in self.frame.columns else [])]

    @property
    def event(self) -> Column:
        """The whole event as a struct, also of one that fails."""
        return F.struct(
            *[F.col(self.state[-1])[stored_name(c)].alias(c["name"]) for c in self.columns]
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
    events: DataFrame,
    fields: Sequence[Field],
    definition: AdjunctDefinition,
    routing_key: str,
    store: str,
    session: SparkSession,
    settings: Settings,
    key: Column | None = None,
) -> Changes:
    """Return the changes that events make.

    `events`: with the user's columns, `_clock`, `_weir_seq` and, of new events, `_segment` and
    `_offset`. `key`: the keys, where they are known; else they are computed. Raises InvalidInput if
    an expression can't be computed from these columns, or has a type that it may not have.
    """
    what = f"of adjunct store {store}"
    rows, columns = events, [field["name"] for field in fields]
    if key is not None:
        rows = rows.withColumn(_KEY_OUTCOME, F.struct(key.alias("value")))
    elif not definition.key_type:
        wanted = check_expression(definition.key or routing_key, f"key {what},", session)
        rows = with_outcome(rows, wanted, _KEY_OUTCOME, f"key {what},", session)
        if not definition.key:  # a routing key is always text
            text = F.col(f"{_KEY_OUTCOME}.value").cast("string")
            outcome = F.when(F.col(_KEY_OUTCOME).isNotNull(), F.struct(text.alias("value")))
            rows = rows.withColumn(_KEY_OUTCOME, outcome)
    if definition.value and not definition.value_columns:
        wanted = check_expression(definition.value, f"value {what},", session)
        rows = with_outcome(rows, wanted, _VALUE_OUTCOME, f"value {what},", session)
    if definition.delete_when:
        wanted = check_expression(definition.delete_when, f"delete condition {what},", session)
        rows = with_outcome(rows, wanted, DELETE_OUTCOME, f"delete condition {what},", session)
        _check_condition(rows.schema[DELETE_OUTCOME].dataType, definition.delete_when, what)
    rows = _with_functions(rows, columns, definition, session, settings, with_key=key is None)
    key_type = rows.schema[_KEY_OUTCOME].dataType["value"].dataType  # type: ignore[index]  # a struct
    if isinstance(key_type, _KEY_TYPES):
        check_types(StructType([StructField("key", key_type)]), f" {what}")
    else:
        raise InvalidInput(
            "adjunct_key_type",
            f"the key {what}, {definition.key or routing_key!r}, is of type "
            f"{key_type.simpleString()}; make it text, a whole number, a decimal, a date, a time "
            "or a boolean, for example with cast(... as string).",
        )
    if isinstance(key_type, StringType):  # a key that nothing could look up fails, too
        unusable = F.coalesce(is_unusable(F.col(f"{_KEY_OUTCOME}.value")), F.lit(False))
        rows = rows.withColumn(_KEY_OUTCOME, F.when(~unusable, F.col(_KEY_OUTCOME)))
    value, values = _value(rows, fields, definition, what)
    outcomes = {
        _KEY_OUTCOME: f"the key {definition.key or routing_key!r}",
        _VALUE_OUTCOME: f"the value {definition.value!r}",
        DELETE_OUTCOME: f"the delete condition {definition.delete_when!r}",
    }
    return _assembled(
        rows, fields, value, values, key_type,
        {name: what for name, what in outcomes.items() if name in rows.columns},
    )  # fmt: skip


def changes_of_nothing(
    session: SparkSession,
    fields: Sequence[Field],
    definition: AdjunctDefinition,
    routing_key: str,
    store: str,
    settings: Settings,
) -> Changes:
    """Return the changes that no events of a stream with these columns make: what the columns of a
    version are. Raises InvalidInput as `changes_of`."""
    columns = StructType.fromJson({"type": "struct", "fields": without_metadata(list(fields))})
    more = [StructField(name, LongType()) for name in (*PLACES, SEQ)]
    events = session.createDataFrame([], StructType([*columns.fields, *more]))
    return changes_of(events, fields, definition, routing_key, store, session, settings)


def _assembled(
    rows: DataFrame,
    fields: Sequence[Field],
    value: Column,
    values: list[StructField],
    key_type: DataType,
    outcomes: dict[str, str],
) -> Changes:
    fails = [F.col(outcome).isNull() for outcome in outcomes]
    deleted = F.lit(False)
    if DELETE_OUTCOME in outcomes:
        deleted = F.coalesce(F.col(f"{DELETE_OUTCOME}.value"), F.lit(False))
        fails = [
            fail & ~deleted if outcome == _VALUE_OUTCOME else fail
            for outcome, fail in zip(outcomes, fails, strict=True)
        ]
    failed = reduce(Column.__or__, fails)
    reasons = zip(fails, outcomes.values(), strict=True)
    reason = F.coalesce(*[F.when(fail, F.lit(f"{what} fails")) for fail, what in reasons])
    value = F.when(failed | ~deleted, value)
    places = all(name in rows.columns for name in ("_segment", "_offset"))
    frame = rows.select(
        F.when(~failed, F.col(f"{_KEY_OUTCOME}.value")).alias(KEY),
        F.col("_clock").alias(CLOCK),
        F.col(SEQ),
        failed.alias(FAILED),
        reason.alias(REASON),
        *([F.struct("_segment", "_offset").alias(PLACE)] if places else []),
        value.alias(VALUE),
        *([_whole(fields).alias(SOURCE)] if _VALUE_OUTCOME in outcomes else []),
    )
    frame = frame.withColumn(HASH, routing_steps(F.col(KEY).cast("string")))
    return Changes(frame, StructField(KEY, key_type, nullable=False), values, fields)


def _whole(fields: Sequence[Field]) -> Column:
    """Return the event as a struct, by the names that files of the stream have."""
    columns = quoted([field["name"] for field in fields])
    return F.struct(*[c.alias(stored_name(f)) for c, f in zip(columns, fields, strict=True)])


def _value(
    rows: DataFrame, fields: Sequence[Field], definition: AdjunctDefinition, what: str
) -> tuple[Column, list[StructField]]:
    """Return the value as a struct, and its columns. The value null is null."""
    if not definition.value:
        kept = [rows.schema[field["name"]] for field in fields]
        return _whole(fields), [StructField(f.name, f.dataType) for f in kept]
    outcome = F.col(f"{_VALUE_OUTCOME}.value")
    kind = rows.schema[_VALUE_OUTCOME].dataType["value"].dataType  # type: ignore[index]  # a struct
    if isinstance(kind, StructType):
        names = kind.fieldNames()
        check_user_columns(names)
        value, values = outcome, [StructField(f.name, f.dataType) for f in kind.fields]
    else:
        value = F.when(outcome.isNotNull(), F.struct(outcome.alias("value")))
        values = [StructField("value", kind)]
    for field in values:
        if _is_null_type(field.dataType):
            raise InvalidInput(
                "adjunct_value_type",
                f"column {field.name!r} of the value {what}, {definition.value!r}, is always null; "
                "give it a type, for example with cast(null as string).",
            )
    check_types(StructType(values), f" of the value {what}")
    return value, values


def _is_null_type(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return _is_null_type(kind.elementType)
    return isinstance(kind, NullType)


def _check_condition(outcome: Any, text: str, what: str) -> None:
    if not isinstance(outcome["value"].dataType, BooleanType):
        raise InvalidInput(
            "adjunct_condition_type",
            f"the delete condition {what}, {text!r}, is of type "
            f"{outcome['value'].dataType.simpleString()}; write a condition such as op = 'delete'.",
        )


def parse_types(ddl: str, what: str) -> StructType:
    """Return declared columns. Raises InvalidInput if they can't be read."""
    return StructType.fromJson({"type": "struct", "fields": declared_columns(ddl, what)})


def parse_type(ddl: str) -> DataType:
    """Return the declared type of a key. Raises InvalidInput if it can't be read as one type."""
    found = parse_types(f"value {ddl}", "key_type")
    if len(found.fields) != 1 or not isinstance(found.fields[0].dataType, _KEY_TYPES):
        raise InvalidInput(
            "columns_invalid",
            f"key_type {ddl!r} is not the type of a key; write one type: STRING, a whole number, "
            "DECIMAL, DATE, TIMESTAMP or BOOLEAN.",
        )
    return found.fields[0].dataType


def _with_functions(
    rows: DataFrame,
    columns: Sequence[str],
    definition: AdjunctDefinition,
    session: SparkSession,
    settings: Settings,
    *,
    with_key: bool,
) -> DataFrame:
    """Return the rows with the outcomes of the store's functions, computed over Arrow batches."""
    wanted: list[tuple[str, str, DataType]] = []
    if definition.key_type and with_key:
        wanted.append((_KEY_OUTCOME, definition.key, parse_type(definition.key_type)))
    if definition.value_columns:
        declared = parse_types(definition.value_columns, "value_columns")
        wanted.append((_VALUE_OUTCOME, definition.value, declared))
    if not wanted:
        return rows
    calls = [
        (
            outcome == _VALUE_OUTCOME,
            name,
            to_arrow_schema(StructType([StructField("value", kind)])).field(0).type,
        )
        for outcome, name, kind in wanted
    ]
    outcomes = [StructField(c, StructType([StructField("value", kind)])) for c, _, kind in wanted]
    work = partial(
        outcomes_of, columns=tuple(columns), calls=calls, packages=settings.function_packages,
        path=settings.function_path,
    )  # fmt: skip
    return rows.mapInArrow(work, StructType([*rows.schema.fields, *outcomes]))
