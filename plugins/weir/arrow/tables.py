"""Rows as programs have them (dictionaries, pandas, Polars, Arrow) as a pyarrow table."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

import pyarrow as pa

from weir.errors import BadRows, InvalidInput, WeirError
from weir.kernel.comparisons import is_number
from weir.kernel.schema import cast_column, from_arrow, to_arrow
from weir.model.schema import Field

if TYPE_CHECKING:
    import pandas

_NUMBERS = {"int", "float"}  # pyarrow makes both doubles, and refuses a number that would change
_WITHOUT_WIDTHS = {b"weir": b"numbers of Python"}
# What pyarrow takes for the same, whatever its class is called: NumPy's numbers, an OrderedDict.
_KINDS = ((bool, "bool"), (Integral, "int"), (Real, "float"), (str, "str"), (datetime, "datetime"),
          (date, "date"), (Mapping, "dict"))  # fmt: skip


def as_table(rows: object) -> pa.Table:
    """Return rows as a pyarrow table: a table itself, a list of dictionaries by column, a pandas or
    Polars DataFrame, a record batch, or whatever offers the Arrow PyCapsule interface.

    A column that a dictionary lacks is null in its row. An unnamed index of pandas is left out.
    Raises BadRows for values of several kinds in one column, of which one would be changed;
    InvalidInput for other rows, and for an index of pandas that has names.
    """
    if isinstance(rows, pa.Table):
        return _without_views(rows)
    if isinstance(rows, pa.RecordBatch):
        return _without_views(pa.Table.from_batches([rows]))
    try:
        if _is_pandas(rows):
            return _without_views(_of_pandas(rows))
        if hasattr(rows, "__arrow_c_stream__"):
            return _without_views(pa.table(rows))
    except WeirError:
        raise
    except (pa.ArrowException, ValueError) as error:
        raise BadRows(
            "bad_rows",
            f"the rows can't become an Arrow table ({error}); give each column one type first.",
        ) from None
    what, wrong = "the rows are", rows
    if isinstance(rows, Sequence) and not isinstance(rows, (str, bytes)):
        number = next((i for i, row in enumerate(rows) if not isinstance(row, Mapping)), None)
        if number is None:
            return _of_dictionaries(rows)
        what, wrong = f"row {number} is", rows[number]
    raise InvalidInput(
        "frame_unsupported",
        f"{what} a {type(wrong).__module__}.{type(wrong).__name__}; give a list of "
        "dictionaries, a pyarrow Table, or a DataFrame of pandas, Polars or Spark.",
    )


def _without_views(table: pa.Table) -> pa.Table:
    """Return a table without the types of texts and bytes of which pyarrow takes no rows."""
    for number, column in enumerate(table.schema):
        if "_view" in str(column.type):
            [plain] = to_arrow(from_arrow(pa.schema([column])))
            made = cast_column(table.column(number), plain)
            table = table.set_column(number, column.name, made)
    return table


def canonical(table: pa.Table) -> pa.Table:
    """Return a table in the types that streams have. A column without a type stays so.

    Raises InvalidInput for a type that they do not have, BadRows for a value that would change.
    """
    fields = from_arrow(table.schema)
    columns = [
        cast_column(column, to_arrow([field]).field(0))
        for column, field in zip(table.columns, fields, strict=True)
    ]
    return pa.table(columns, names=table.column_names, metadata=table.schema.metadata)


def _is_pandas(rows: object) -> "TypeGuard[pandas.DataFrame]":
    # Who has such rows has loaded it. Where another thread is just loading it, it lacks the class.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return frame is not None and isinstance(rows, frame)


def _of_pandas(rows: "pandas.DataFrame") -> pa.Table:
    names = [str(name) for name in rows.index.names if name is not None]
    if names:
        raise InvalidInput(
            "columns_invalid",
            f"the DataFrame has the index {', '.join(names)}, which would be lost; call "
            "reset_index() to have columns of it, or reset_index(drop=True).",
        )
    for number, name in enumerate(rows.columns):
        kind = rows.dtypes.iloc[number]
        if kind.kind == "O" and not hasattr(kind, "pyarrow_dtype"):  # else each has one type
            column = rows.iloc[:, number]
            missing = column.isna()  # NaN, NaT and NA, which are null
            _check_alike(str(name), column[~missing])
    return pa.Table.from_pandas(rows, preserve_index=False)


def _of_dictionaries(rows: Sequence[Mapping[str, object]]) -> pa.Table:
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(
                "columns_invalid", f"a row has the key {name!r}; name columns by texts."
            )
    columns = {}
    for name in names:
        values = [row.get(name) for row in rows]
        _check_alike(name, values)
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            raise BadRows(
                "bad_rows",
                f"the values of column {name!r} can't be kept ({error}); give them one type, or "
                "append a pyarrow table with the type that they are to have.",
            ) from None
    return pa.table(columns).replace_schema_metadata(_WITHOUT_WIDTHS)


def in_types(table: pa.Table, fields: Sequence[Field] | None) -> pa.Table:
    """Return rows with the numbers of dictionaries in the types of a stream's columns, which can
    keep them: Python's numbers have no width. A column with one that can't be kept stays."""
    if table.schema.metadata != _WITHOUT_WIDTHS:
        return table
    for field in to_arrow([one for one in fields or () if one["name"] in table.column_names]):
        given = table[field.name]
        if given.type != field.type and is_number(given.type) and is_number(field.type):
            with suppress(pa.ArrowInvalid):
                made = _cast(given, field.type)
                table = table.set_column(table.column_names.index(field.name), field.name, made)
    return table


def _cast(given: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Return numbers in another type. Raises ArrowInvalid for one that can't be kept. Between
    decimals and others the texts decide: pyarrow rounds floats, and asks for room for all whole
    numbers."""
    if not pa.types.is_decimal(given.type) and pa.types.is_decimal(kind):
        return given.cast(pa.string()).cast(kind)
    both_float = pa.types.is_floating(given.type) and pa.types.is_floating(kind)
    made = given.cast(kind, safe=not both_float)
    from_decimal = pa.types.is_decimal(given.type) and pa.types.is_floating(kind)
    if from_decimal and made.cast(pa.string()).cast(given.type) != given:
        raise pa.ArrowInvalid("a decimal has more digits than a float keeps")
    return made


def _check_alike(name: str, values: Iterable[Any]) -> None:
    """Raise BadRows for values of several kinds, of which pyarrow would turn some into others: a
    time into a date, a text into bytes, a local time into one of UTC."""
    given = [value for value in values if value is not None]
    kinds = {_kind_of(one) for one in set(map(type, given))}
    if kinds == {"datetime"}:
        kinds = {_kind_of_time(value) for value in given}
    if len(kinds) > 1 and not kinds <= _NUMBERS and kinds != {"list", "tuple"}:
        raise BadRows(
            "bad_rows",
            f"column {name!r} has values of several kinds ({', '.join(sorted(kinds))}), so some of "
            "them would be changed; give them one type.",
        )
    if kinds & {"set", "frozenset"}:
        raise BadRows("bad_rows", f"column {name!r} has sets, which have no order; give lists.")
    if kinds and kinds <= {"list", "tuple"}:
        _check_alike(f"{name}[]", chain.from_iterable(given))
    elif kinds == {"dict"}:
        for part in dict.fromkeys(chain.from_iterable(given)):
            _check_alike(f"{name}.{part}", [value.get(part) for value in given])


def _kind_of(given: type) -> str:
    return next((name for kind, name in _KINDS if issubclass(given, kind)), given.__name__)


def _kind_of_time(value: datetime) -> str:
    return "datetime" if value.tzinfo is None else "datetime with a time zone"
