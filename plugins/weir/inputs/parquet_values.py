"""Values of Parquet columns as pyarrow reads them, in the types in which Weir keeps them."""

from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput
from weir.inputs.parquet_footer import Footer
from weir.inputs.parquet_types import UUID
from weir.inputs.rows import MARK
from weir.kernel.rejected import with_faults
from weir.kernel.schema import arrow_type, texts_of_uuids
from weir.model.schema import Field, Kind, parts_of, show

# The day since which the Julian calendar is not used any more, and the time, in microseconds, since
# when all zones have the same clocks in old Sparks and new ones.
_DAY, _TIME = -141_427, -2_208_988_800_000_000
_FINER = ""
_OLD = ", because an old Spark has counted its days by the Julian calendar"


def kept(column: pa.Array, own: Kind, wanted: pa.DataType) -> pa.Array:
    """Return a column of the type `own` of a file in a type that holds it. Raises ArrowInvalid for
    a value that would change. Texts stay as they are, also if they are not UTF-8."""
    if own == UUID:
        return texts_of_uuids(column)
    if column.type == wanted:
        return column
    return pc.cast(column, options=pc.CastOptions(wanted, allow_invalid_utf8=True))


def kept_or_marked(
    column: pa.Array, own: Kind, wanted: Field, footer: Footer, fine: pa.Array | None
) -> tuple[pa.Array, dict[int, str]]:
    """Return a column in the type in which it is kept, and of the rows whose values would change,
    which are null, what each value is not. `fine`: its times of 96 bits in nanoseconds."""
    lost: dict[int, str] = {}
    kind, said = arrow_type(wanted["type"]), show(wanted["type"])
    if fine is not None or footer.old_days:

        def why(i: int, j: int) -> str | None:
            return _lost(
                _part(column, i, j), own, footer, None if fine is None else _part(fine, i, j)
            )

        rows = _rows(lambda i, j: why(i, j) is not None, 0, len(column))
        lost = {row: said + str(why(row, row + 1)) for row in rows}
        column = _without(column, lost)
    try:
        return kept(column, own, kind), lost
    except pa.ArrowInvalid:

        def fails(i: int, j: int) -> bool:
            try:
                kept(_part(column, i, j), own, kind)
            except pa.ArrowInvalid:
                return True
            return False

        lost |= dict.fromkeys(_rows(fails, 0, len(column)), said)
        return kept(_without(column, lost), own, kind), lost


def marks_of(rows: pa.RecordBatch, faults: dict[int, tuple[str, str]]) -> pa.Array:
    """Return marks of the rows that do not fit (`_weir_malformed`). `faults`: of these, the column
    and what its value is not."""
    if not faults:
        return pa.nulls(rows.num_rows, MARK)
    parts = with_faults(pa.Table.from_batches([rows]), faults)
    marks = pa.StructArray.from_arrays(list(parts.values()), fields=list(MARK))
    places, fits = np.zeros(rows.num_rows, np.int64), np.ones(rows.num_rows, bool)
    places[sorted(faults)] = np.arange(len(faults))
    fits[sorted(faults)] = False
    return marks.take(pa.array(places, mask=fits))


def check_structure(path: str, columns: list[Field], schema: pa.Schema) -> None:
    """Raise InvalidInput for a column that pyarrow takes for another one than the rules of Parquet
    say: lists and maps of old writers have several readings."""
    for one, found in zip(columns, schema, strict=True):
        if not _is_read_so(one["type"], found.type):
            raise InvalidInput(
                "column_type_unsupported",
                f"column {one['name']!r} of the input file {path!r} is {show(one['type'])} by the "
                f"rules of Parquet, but pyarrow reads {found.type}; write it again.",
            )


def _is_read_so(kind: Kind, found: pa.DataType) -> bool:
    if isinstance(kind, str):
        return not pa.types.is_nested(found)
    if kind["type"] == "struct":
        names = [one["name"] for one in kind["fields"]]
        if not pa.types.is_struct(found) or names != [one.name for one in found]:
            return False
        inner = [one.type for one in found]
    elif kind["type"] == "map":
        inner = [found.key_type, found.item_type] if pa.types.is_map(found) else []
    else:
        inner = [found.value_type] if pa.types.is_list(found) else []
    return bool(inner) and all(map(_is_read_so, parts_of(kind), inner))


def _rows(is_bad: Callable[[int, int], bool], begin: int, end: int) -> Iterator[int]:
    """Yield the bad rows of a range. `is_bad` says whether a range has some."""
    if begin == end or not is_bad(begin, end):
        return
    if end - begin == 1:
        yield begin
        return
    middle = (begin + end) // 2
    yield from _rows(is_bad, begin, middle)
    yield from _rows(is_bad, middle, end)


def _part(column: pa.Array, begin: int, end: int) -> pa.Array:
    """Return some rows alone: a slice of lists would still have the values of the others."""
    return column.take(pa.array(np.arange(begin, end)))


def _without(column: pa.Array, rows: dict[int, str]) -> pa.Array:
    if not rows:
        return column
    places = np.arange(len(column))
    gone = np.zeros(len(column), bool)
    gone[list(rows)] = True
    return column.take(pa.array(places, mask=gone))


def _lost(column: pa.Array, own: Kind, footer: Footer, fine: pa.Array | None) -> str | None:
    """Return why a value of a column is lost, if one is: a time of 96 bits that is finer than a
    microsecond, or a day of the Julian calendar."""
    leaves = list(_leaves(column, own))
    wide = [leaf for leaf, kind in leaves if _is_wide(leaf, kind)]
    if fine is not None and wide:
        for leaf, finer in zip(wide, (leaf for leaf, _ in _leaves(fine, None)), strict=True):
            longs = [one.drop_null().view(pa.int64()).to_numpy() for one in (finer, leaf)]
            if (longs[0] != longs[1] * 1000).any():  # both wrap around in the same way
                return _FINER
    for leaf, kind in leaves:
        old = footer.old_int96 if _is_wide(leaf, kind) else footer.old_days
        if not old or not (pa.types.is_date(leaf.type) or pa.types.is_timestamp(leaf.type)):
            continue
        is_day = pa.types.is_date(leaf.type)
        least = pc.min(leaf.view(pa.int32() if is_day else pa.int64())).as_py()
        limit = _DAY if is_day else _TIME // (1000 if leaf.type.unit == "ms" else 1)
        if least is not None and least < limit:
            return _OLD
    return None


def _is_wide(leaf: pa.Array, kind: Kind | None) -> bool:
    """Return whether a column has times of 96 bits, which alone have neither a zone nor none."""
    return kind == "timestamp" and leaf.type.tz is None


def _leaves(column: pa.Array, kind: Kind | None) -> Iterator[tuple[pa.Array, Kind | None]]:
    """Yield the columns of simple types in a column, with these types as far as `kind` says."""
    if pa.types.is_struct(column.type):
        for leaf, part in zip_longest(column.flatten(), parts_of(kind or "")):
            yield from _leaves(leaf, part)
    elif pa.types.is_map(column.type):
        pair = pa.struct([("key", column.type.key_type), ("value", column.type.item_type)])
        # As a list: the keys and items of a map are also those of rows that were sliced off.
        yield from _leaves(column.cast(pa.list_(pair)).flatten(), kind)
    elif pa.types.is_list(column.type):
        yield from _leaves(column.flatten(), next(iter(parts_of(kind or "")), None))
    else:
        yield column, kind
