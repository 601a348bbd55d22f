"""Which rows match: those of routing keys, those with keys in columns, and those that fulfil a
condition. What says so may be sent to another process."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.event_time import times_of
from weir.kernel.key_texts import as_texts
from weir.kernel.transforms import Computation, condition_over, fulfilled
from weir.model.transforms import condition_of, value_of

Mask: TypeAlias = pa.Array | pa.ChunkedArray
_NUMBER = re.compile(r"(-?)0*([0-9]+?)(?:\.([0-9]*?)0*)?")


class Matching(NamedTuple):
    """What says of each row whether it matches. `columns`: those that it looks at."""

    columns: Sequence[str]
    rows: Callable[[pa.Table], Mask]


def routing_keys(stream: object, routing_key: str, schema: pa.Schema) -> Computation:
    """Return what computes the routing keys of rows of a stream."""
    what = f"routing key of stream {stream},"
    return Computation.of_key(value_of(routing_key, what), schema, what)


def with_routing_keys(computed: Computation, keys: Sequence[str]) -> Matching:
    """Return what matches rows that have one of some routing keys."""
    return Matching(computed.columns, functools.partial(_of_keys, computed, keys))


def _of_keys(computed: Computation, keys: Sequence[str], rows: pa.Table) -> Mask:
    return _is_one(computed.texts(rows).values, keys)


def in_columns(columns: Sequence[str], keys: Sequence[str]) -> Matching:
    """Return what matches rows of which a column, as text, is one of some keys. A whole number or a
    decimal is one that equals it: it gets other zeros when its column is widened, or is written."""
    return Matching(columns, functools.partial(_in_columns, columns, keys))


def _in_columns(columns: Sequence[str], keys: Sequence[str], rows: pa.Table) -> Mask:
    return functools.reduce(pc.or_, (_has_key(rows[name], keys) for name in columns))


def _has_key(values: pa.ChunkedArray, keys: Sequence[str]) -> Mask:
    texts = _texts(values)
    if pa.types.is_decimal(values.type) and values.type.scale > 0:
        texts = pc.utf8_rtrim(pc.utf8_rtrim(texts, "0"), ".")
    if is_number(values.type):
        keys = [plain_number(key) for key in keys]
    return _is_one(texts, keys)


def is_number(kind: pa.DataType) -> bool:
    """Return whether the values of a type are numbers, of which equal ones may have other texts."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind)
    )


def plain_number(text: str) -> str:
    """Return the text of a number without what does not change it: zeros at its ends, and the sign
    of zero. Another text stays as it is."""
    if (found := _NUMBER.fullmatch(text)) is None:
        return text
    sign, whole, fraction = found.groups()
    plain = f"{whole}.{fraction}" if fraction else whole
    return plain if plain == "0" else sign + plain


def has_texts(kind: pa.DataType) -> bool:
    """Return whether the values of a type have texts, which can be keys."""
    if pa.types.is_timestamp(kind) and kind.unit != "us":
        return False
    try:
        _texts(pa.chunked_array([], kind))
    except TypeError:
        return False
    return True


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    return as_texts(values.cast(pa.string()) if pa.types.is_large_string(values.type) else values)


def _is_one(texts: pa.ChunkedArray, keys: Sequence[str]) -> Mask:
    return pc.is_in(texts, value_set=pa.array(keys, pa.string()))


def with_event_time(
    stream: object, event_time: str, schema: pa.Schema, low: int, high: int
) -> Matching:
    """Return what matches rows of a stream with an event time from `low` on and before `high`, in
    microseconds since 1970 UTC. Raises InvalidInput if it can't be computed of them."""
    what = f"event time of stream {stream},"
    computed = Computation.of(value_of(event_time, what), schema, what)
    return Matching(computed.columns, functools.partial(_with_event_time, computed, low, high))


def _with_event_time(computed: Computation, low: int, high: int, rows: pa.Table) -> Mask:
    times = times_of(computed.over(rows).values)
    return pc.fill_null(pc.and_(pc.greater_equal(times, low), pc.less(times, high)), False)


def fulfilling(condition: str, schema: pa.Schema) -> Matching:
    """Return what matches rows of a schema that fulfil a condition. Raises InvalidInput for one
    that can't be computed of them."""
    computed = condition_over(condition_of(condition, "condition"), schema, "condition")
    return Matching(computed.columns, functools.partial(_fulfilling, computed))


def _fulfilling(computed: Computation, rows: pa.Table) -> Mask:
    return fulfilled(computed.over(rows))
