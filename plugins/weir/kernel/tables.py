"""Rows as programs have them (dictionaries, pandas, Polars, Arrow) as a pyarrow table."""

import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from itertools import chain
from numbers import Integral, Real
from typing import Any

import pyarrow as pa

from weir.errors import BadRows, InvalidInput, WeirError
from weir.kernel.schema import cast_column, from_arrow, to_arrow
from weir.model.schema import VOID

_NUMBERS = {"int", "float"}  # pyarrow makes both doubles, and refuses a number that would change
# What pyarrow takes for the same, whatever its class is called: NumPy's numbers, an OrderedDict.
_KINDS = ((bool, "bool"), (Integral, "int"), (Real, "float"), (str, "str"), (datetime, "datetime"),
          (date, "date"), (Mapping, "dict"))  # fmt: skip


def as_table(rows: Any) -> pa.Table:
    """Return rows as a pyarrow table: a table itself, a list of dictionaries by column, a pandas or
    Polars DataFrame, a record batch, or whatever offers the Arrow PyCapsule interface.

    A column that a dictionary lacks is null in its row. An unnamed index of pandas is left out.
    Raises BadRows for values of several kinds in one column, of which one would be changed;
    InvalidInput for other rows, and for an index of pandas that has names.
    """
    if isinstance(rows, pa.Table):
        return rows
    if isinstance(rows, pa.RecordBatch):
        return pa.Table.from_batches([rows])
    try:
        if _is_pandas(rows):
            return _of_pandas(rows)
        if hasattr(rows, "__arrow_c_stream__"):
            return pa.table(rows)
    except WeirError:
        raise
    except (pa.ArrowException, ValueError) as error:
        raise BadRows(
            "bad_rows",
            f"the rows can't become an Arrow table ({error}); give each column one type first.",
        ) from None
    what, listed = "the rows are", isinstance(rows, Sequence) and not isinstance(rows, (str, bytes))
    wrong = rows
    for number, row in enumerate(rows if listed else ()):
        if not isinstance(row, Mapping):
            what, wrong = f"row {number} is", row
            break
    else:
        if listed:
            return _of_dictionaries(rows)
    raise InvalidInput(
        "frame_unsupported",
        f"{what} a {type(wrong).__module__}.{type(wrong).__name__}; give a list of "
        "dictionaries, a pyarrow Table, or a DataFrame of pandas, Polars or Spark.",
    )


def canonical(table: pa.Table) -> pa.Table:
    """Return a table in the types that streams have. A column without a type stays so.

    Raises InvalidInput for a type that they do not have, BadRows for a value that would change.
    """
    fields = from_arrow(table.schema)
    columns = [
        column if field["type"] == VOID else cast_column(column, to_arrow([field]).field(0))
        for column, field in zip(table.columns, fields, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _is_pandas(rows: Any) -> bool:
    # Who has such rows has loaded it. Where another thread is just loading it, it lacks the class.
    frame = getattr(sys.modules.get("pandas"), "DataFrame", None)
    return frame is not None and isinstance(rows, frame)


def _of_pandas(rows: Any) -> pa.Table:
    names = [str(name) for name in rows.index.names if name is not None]
    if names:
        raise InvalidInput(
            "frame_index",
            f"the DataFrame has the index {', '.join(names)}, which would be lost; call "
            "reset_index() to have columns of it, or reset_index(drop=True).",
        )
    for number, name in enumerate(rows.columns):
        if rows.dtypes.iloc[number].kind == "O":
            column = rows.iloc[:, number]
            missing = column.isna()  # NaN, NaT and NA, which are null
            _check_alike(str(name), column[~missing])
    return pa.Table.from_pandas(rows, preserve_index=False)


def _of_dictionaries(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    names = list(dict.fromkeys(chain.from_iterable(rows)))
    for name in names:
        if not isinstance(name, str):
            raise InvalidInput(
                "column_name_invalid", f"a row has the key {name!r}; name columns by texts."
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
    return pa.table(columns)


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
