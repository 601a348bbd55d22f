"""The columns that the names of folders hold, beside those of the files in them."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import InvalidInput
from weir.inputs.files import ROW_BITS, Inputs
from weir.inputs.folder_names import partitions_of
from weir.inputs.rows import Piece, Values
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value
from weir.model.names import shortened
from weir.model.schema import SEQ, VOID, Field, Kind, new_field, show

_DAY = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_NUMBER = re.compile(r"([+-]?)0*([0-9].*)", re.DOTALL)


@dataclass(frozen=True)
class FolderColumns:
    """The columns of folders: `columns` has the value of each file. `fields`: all columns of the
    rows."""

    columns: dict[str, pa.Array]
    fields: list[Field]

    def added(self, table: pa.Table) -> pa.Table:
        """Return rows that have their ranks with the columns of their folders. Raises InvalidInput
        for rows whose own value is another one."""
        files = pc.shift_right(table[SEQ], ROW_BITS)
        for name, values in self.columns.items():
            column = values.take(files)
            if name not in table.column_names:
                table = table.append_column(name, column)
                continue
            own = table[name]
            if own.null_count < len(own):
                other = pc.and_(own.is_valid(), pc.fill_null(pc.not_equal(own, column), True))
                _check_same(name, own, column, pc.index(other, True).as_py())
            table = table.set_column(table.column_names.index(name), name, column)
        return table


def _check_same(name: str, own: pa.ChunkedArray, column: pa.ChunkedArray, row: int) -> None:
    """Raise InvalidInput for a value that is another one than its folder says. `row`: -1 if there
    is none."""
    if row >= 0:
        raise InvalidInput(
            "file_invalid",
            f"column {name!r} is {shortened(str(own[row]))} in a row of a file whose folder says "
            f"{shortened(str(column[row]))}; correct the file, or its folder.",
        )


@dataclass(frozen=True)
class WithFolders:
    """Rows of files with the columns of their folders."""

    values: Values
    folders: FolderColumns

    @property
    def pieces(self) -> Sequence[Piece]:
        """The pieces of the files."""
        return self.values.pieces

    @property
    def fields(self) -> list[Field]:
        """All columns."""
        return self.folders.fields

    def tables(self, piece: Any) -> Iterator[pa.Table]:
        """Yield the rows of a piece, as those of the files."""
        return map(self.folders.added, self.values.tables(piece))


def folder_columns(
    inputs: Inputs, fields: list[Field], known: Sequence[Field] | None, say: Callable[[str], None]
) -> FolderColumns | None:
    """Return the columns that the folders of files hold, beside `fields`; None without any.

    A column has the type that it has in the files, or in the stream (`known`); else it is text.
    Raises InvalidInput for a value that is none of that type.
    """
    partitions = partitions_of([file.path for file in inputs.files])
    if not partitions:
        return None
    say(f"columns from the names of folders: {', '.join(partitions)}")
    columns, found = dict[str, pa.Array](), list(fields)
    for name, texts in partitions.items():
        own = _named(fields, name)
        of_stream = _named(known or (), name)
        said = [one["type"] for one in (own, of_stream) if one and one["type"] != VOID]
        kind = said[0] if said else "string"
        columns[own["name"] if own else name] = _values(name, texts, kind)
        if own is None:
            found.append(new_field(name, kind))
        else:
            found[found.index(own)] = {**own, "type": kind}
    return FolderColumns(columns, found)


def _named(fields: Sequence[Field], name: str) -> Field | None:
    return next((one for one in fields if one["name"].lower() == name.lower()), None)


def _values(name: str, texts: Sequence[str | None], kind: Kind) -> pa.Array:
    """Return the values of texts that stand in the names of folders. They may be written in other
    ways than values of files are: `month=01`."""
    plain = [text if text is None else _plain(text, show(kind)) for text in texts]
    found = None
    if isinstance(kind, str):
        column = pa.chunked_array([pa.array(plain, pa.string())])
        found = value(column, kind, TextOptions()).combine_chunks()
    for i, text in enumerate(texts):
        if text is not None and (found is None or not found[i].is_valid):
            raise InvalidInput(
                "file_invalid",
                f"a folder is named {name}={shortened(text)}, but column {name!r} has the type "
                f"{show(kind)}; rename the folder, or append it to another stream.",
            )
    return found


def _plain(text: str, kind: str) -> str:
    if kind in ("byte", "short", "integer", "long", "float", "double") or kind[:7] == "decimal":
        match = _NUMBER.fullmatch(text)
        return f"{match[1].lstrip('+')}{match[2]}" if match else text
    if kind == "date" and (day := _DAY.fullmatch(text)):
        return f"{day[1]}-{day[2]:>02}-{day[3]:>02}"
    return text
