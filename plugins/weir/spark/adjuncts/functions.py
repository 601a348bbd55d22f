"""Call the functions of an adjunct store with batches of events, in Spark's Python workers."""

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.consumers.user_functions import load_function
from weir.errors import InvalidInput
from weir.spark.failures.causes import caused_by_events

DELETE_OUTCOME = "_weir_d"  # the column with what the delete condition says of an event


def outcomes_of(
    batches: Iterator[pa.RecordBatch],
    *,
    columns: Sequence[str],
    calls: Sequence[tuple[bool, str, pa.DataType]],
    packages: Sequence[str],
    path: Sequence[str],
) -> Iterator[pa.RecordBatch]:
    """Add the outcomes of functions to each batch. Runs in Spark's Python workers.

    `calls`: per function whether it makes values, its name, and what it returns. One that makes
    values is not asked about events that delete.
    """
    sys.path[:0] = [folder for folder in path if folder not in sys.path]
    functions = [
        (values, load_function(name, packages, path), name, kind) for values, name, kind in calls
    ]
    for batch in batches:
        given = batch.select(list(columns))
        deletes = None
        if DELETE_OUTCOME in batch.schema.names:
            deletes = pc.fill_null(pc.struct_field(batch.column(DELETE_OUTCOME), "value"), False)
        made = [
            _outcome(function, name, given, kind) if not values or deletes is None
            else _outcome_of_others(function, name, given, kind, deletes)
            for values, function, name, kind in functions
        ]  # fmt: skip
        names = [*batch.schema.names, *(f"_{i}" for i in range(len(made)))]
        yield pa.RecordBatch.from_arrays([*batch.columns, *made], names=names)


def _outcome_of_others(
    function: Callable[..., Any],
    name: str,
    batch: pa.RecordBatch,
    kind: pa.DataType,
    deletes: pa.BooleanArray,
) -> pa.Array:
    """Return the outcomes for the rows that do not delete; null for the others."""
    asked = pc.invert(deletes)
    made = _outcome(function, name, batch.filter(asked), kind)
    numbers = pc.subtract(pc.cumulative_sum(asked.cast(pa.int64())), 1)
    return made.take(pc.if_else(asked, numbers, pa.scalar(None, pa.int64())))


def _outcome(
    function: Callable[..., Any], name: str, batch: pa.RecordBatch, kind: pa.DataType
) -> pa.Array:
    """Return one struct for each row, null where the function raises. If it raises for a batch, it
    is called for each row.

    What is not the events' fault is raised: an outage or a mistake of the function would fail for
    all rows, and a store that skips failing rows would lose them.
    """
    outcome = pa.struct([pa.field("value", kind)])
    if batch.num_rows == 0:
        return pa.array([], outcome)
    try:
        values = called(function, name, batch, kind)
    except Exception as error:
        if not caused_by_events(error):
            raise
        if batch.num_rows == 1:
            return pa.nulls(1, outcome)
        rows = [_outcome(function, name, batch.slice(i, 1), kind) for i in range(batch.num_rows)]
        return pa.concat_arrays(rows)
    return pa.StructArray.from_arrays([values], names=["value"])


def called(
    function: Callable[..., Any], name: str, batch: pa.RecordBatch, kind: pa.DataType
) -> pa.Array:
    """Call a function with a batch of events, and return its values, one for each row.

    It may return an array, a record batch or a table of as many rows. Raises InvalidInput if it
    returns another number of rows, or another type.
    """
    found = function(batch)
    if isinstance(found, pa.Table):
        found = found.combine_chunks().to_struct_array()
    if isinstance(found, pa.RecordBatch):
        found = found.to_struct_array()
    if isinstance(found, pa.ChunkedArray):
        found = pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)
    if not isinstance(found, pa.Array) or len(found) != batch.num_rows:
        shown = f"{len(found)} values" if isinstance(found, pa.Array) else type(found).__name__
        raise InvalidInput(
            "function_result_invalid",
            f"function {name} returned {shown} for {batch.num_rows} events; return a pyarrow array "
            "or record batch with one value for each event.",
        )
    if found.type == kind:
        return found
    try:
        return found.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInput(
            "function_result_invalid",
            f"function {name} returned {found.type}, but the store declares {kind} ({error}); "
            "return what is declared, or declare what it returns.",
        ) from None
