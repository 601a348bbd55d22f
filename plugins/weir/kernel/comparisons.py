"""Compare columns exactly: numbers by what they are, whatever their types; NaN equals itself and is
greater than any other number, as in Spark."""

from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

Side: TypeAlias = pa.ChunkedArray | pa.Scalar
_BY = {
    "=": pc.equal, "!=": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal,
}  # fmt: skip
_WHOLE = pa.int64()
FARTHEST_DAY = 106_751_991  # from 1970 on, of those that microseconds in 64 bits reach


def compared(sign: str, left: Side, right: Side) -> pa.ChunkedArray:
    """Return what a comparison of columns or scalars gives; null where one of them is. Raises
    TypeError for types that can't be compared."""
    one, other = _alike(left, right)
    found = _BY[sign](one, other)
    if not pa.types.is_floating(one.type):
        return found
    nan, than = pc.is_nan(one), pc.is_nan(other)
    if sign in ("<", "<="):
        nan, than = than, nan
    either = pc.or_(nan, than)
    if sign in ("=", "!="):
        special = pc.equal(nan, than) if sign == "=" else pc.not_equal(nan, than)
    elif sign in (">", "<"):
        special = pc.and_(nan, pc.invert(than))
    else:
        special = nan
    return pc.if_else(either, special, found)


def _alike(left: Side, right: Side) -> tuple[Side, Side]:
    kinds = left.type, right.type
    if any(map(pa.types.is_null, kinds)):  # no value has shown the type of a column
        kind = next((one for one in kinds if not pa.types.is_null(one)), pa.bool_())
        return _alike(left.cast(kind), right.cast(kind))
    if kinds[0] == kinds[1]:
        if pa.types.is_nested(kinds[0]) or pa.types.is_binary(kinds[0]):
            raise TypeError
        return left, right
    if all(map(is_number, kinds)):
        wide = _widest(*kinds)
        return _cast(left, wide), _cast(right, wide)
    if all(pa.types.is_date32(k) or pa.types.is_timestamp(k) for k in kinds):
        if all(map(pa.types.is_timestamp, kinds)):  # one of a zone, the other of none
            raise TypeError
        wide = next(kind for kind in kinds if pa.types.is_timestamp(kind))
        return _as_moment(left, wide), _as_moment(right, wide)
    raise TypeError


def is_exact(kind: pa.DataType) -> bool:
    """Return whether values of a type are whole numbers or decimals."""
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind))


def is_number(kind: pa.DataType) -> bool:
    """Return whether values of a type are numbers."""
    return is_exact(kind) or bool(pa.types.is_floating(kind))


def _widest(*kinds: pa.DataType) -> pa.DataType:
    if any(map(pa.types.is_floating, kinds)):
        return pa.float64()
    if all(map(pa.types.is_integer, kinds)):
        return _WHOLE
    return pa.decimal256(76, max(getattr(kind, "scale", 0) for kind in kinds))


def _cast(given: Side, wide: pa.DataType) -> Side:
    if pa.types.is_decimal(wide) and pa.types.is_integer(given.type):
        given = given.cast(_WHOLE).cast(pa.decimal128(19, 0))
    return given.cast(wide, safe=not pa.types.is_floating(wide))


def _as_moment(given: Side, kind: pa.DataType) -> Side:
    """Return times, or midnights of dates, of which those that are too far are the farthest."""
    if pa.types.is_timestamp(given.type):
        return given
    days = given.cast(pa.int32()).cast(_WHOLE)
    near = pc.less_equal(pc.abs(days), FARTHEST_DAY)
    micros = pc.multiply(pc.if_else(near, days, 0), 86_400_000_000)
    far = pc.if_else(pc.greater(days, 0), (1 << 63) - 1, -(1 << 63))
    return pc.if_else(near, micros, far).cast(kind)
