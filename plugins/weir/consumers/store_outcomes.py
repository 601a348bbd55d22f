"""Compute what events make of the keys of an adjunct store, batch by batch, by the transforms and
functions of its definition (`weir.consumers.store_parts`)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from weir.consumers.failures import caused_by_events
from weir.consumers.store_parts import Part, Parts
from weir.consumers.user_functions import load_function
from weir.errors import InvalidInput
from weir.kernel.keys import unusable
from weir.kernel.transform_values import Outcome
from weir.kernel.transforms import failing

Function = Callable[[pa.RecordBatch], object]


class Made(NamedTuple):
    """What is made of each event. `value`: anything for one that deletes; None for whole events.
    `reason`: what fails, if something does."""

    key: pa.Array
    value: pa.Array | None
    deletes: pa.Array
    reason: pa.Array


class Maker:
    """Makes keys and values of batches of events."""

    def __init__(self, parts: Parts, packages: Sequence[str], path: Sequence[str]) -> None:
        self._parts = parts
        self._functions = {
            part.function: load_function(part.function, packages, path)
            for part in (parts.key, parts.value)
            if part is not None and part.function
        }

    def made(self, batch: pa.RecordBatch, keys: pa.Array | None = None) -> Made:
        """Return what is made of events. `keys`: if they are known. A function of values is not
        asked about events that delete, and a value may fail there."""
        parts, fails = self._parts, list[tuple[Part, pa.Array]]()
        if keys is None:
            found = self._outcome(parts.key, batch)
            keys = _array(found.values)
            fails.append(
                (parts.key, pc.or_(_array(failing(found)), pa.array(unusable(found.values))))
            )
        deletes, value = pa.repeat(False, batch.num_rows), None
        deletion = None if parts.deletes is None else self._outcome(parts.deletes, batch)
        if deletion is not None:
            deletes = pc.fill_null(_array(deletion.values), False)
        if parts.value is not None:
            found = self._values(parts.value, batch, deletes)
            value = _array(found.values)
            fails.append((parts.value, pc.and_not(_array(failing(found)), deletes)))
        if parts.deletes is not None and deletion is not None:
            fails.append((parts.deletes, _array(failing(deletion))))
        reason = pa.nulls(batch.num_rows, pa.string())
        for part, wrong in reversed(fails):
            reason = pc.if_else(wrong, f"{part.what} fails", reason)
        return Made(keys, value, deletes, reason)

    def _values(self, part: Part, batch: pa.RecordBatch, deletes: pa.Array) -> Outcome:
        if not part.function or not pc.any(deletes).as_py():
            return self._outcome(part, batch)
        asked = pc.invert(deletes)
        made = self._outcome(part, batch.filter(asked))
        places = pc.subtract(pc.cumulative_sum(asked.cast(pa.int64())), 1)
        places = pc.if_else(asked, places, pa.scalar(None, pa.int64()))
        return Outcome(made.values.take(places), failing(made).take(places))

    def _outcome(self, part: Part, batch: pa.RecordBatch) -> Outcome:
        if part.function:
            function = self._functions[part.function]
            return _of_function(function, part.function, batch, part.arrow)
        rows = pa.Table.from_batches([batch])
        found = {
            name: one.texts(rows) if part.as_text else one.over(rows)
            for name, one in part.columns.items()
        }
        if "" in found:
            return found[""]
        columns = [_array(one.values) for one in found.values()]
        fields = [pa.field(name, one.type) for name, one in zip(found, columns, strict=True)]
        failed = pa.repeat(False, batch.num_rows)
        for one in found.values():
            failed = pc.or_(failed, _array(failing(one)))
        values = pa.StructArray.from_arrays(columns, fields=fields)
        return Outcome(pa.chunked_array([values]), pa.chunked_array([failed]))


def _array(values: pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _of_function(
    function: Function, name: str, batch: pa.RecordBatch, kind: pa.DataType
) -> Outcome:
    """Return what a function makes of events; those fail for which it raises. If it raises for a
    batch, it is called for each row.

    What is not the events' fault is raised: an outage or a mistake of the function would fail for
    all rows, and a store that skips failing rows would lose them.
    """
    if batch.num_rows == 0:
        return Outcome(pa.chunked_array([], kind))
    try:
        return Outcome(pa.chunked_array([called(function, name, batch, kind)]))
    except Exception as error:
        if not caused_by_events(error):
            raise
        if batch.num_rows == 1:
            return Outcome(pa.chunked_array([pa.nulls(1, kind)]), pa.chunked_array([[True]]))
    rows = [_of_function(function, name, batch.slice(i, 1), kind) for i in range(batch.num_rows)]
    return Outcome(
        pa.chunked_array([chunk for one in rows for chunk in one.values.chunks], kind),
        pa.chunked_array([chunk for one in rows for chunk in failing(one).chunks], pa.bool_()),
    )


def called(function: Function, name: str, batch: pa.RecordBatch, kind: pa.DataType) -> pa.Array:
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
            "function_invalid",
            f"function {name} returned {shown} for {batch.num_rows} events; return a pyarrow array "
            "or record batch with one value for each event.",
        )
    if found.type == kind:
        return found
    try:
        return found.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise InvalidInput(
            "function_invalid",
            f"function {name} returned {found.type}, but the store declares {kind} ({error}); "
            "return what is declared, or declare what it returns.",
        ) from None
