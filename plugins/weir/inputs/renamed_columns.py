"""Columns that files call by other names than their stream does."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weir.errors import InvalidInput
from weir.front_ends import called, leave_out
from weir.inputs.rows import MARK, Piece, Values
from weir.kernel.rejected import MALFORMED
from weir.model.names import check_user_columns
from weir.model.schema import Field


def as_files_call(known: list[Field] | None, rename: Mapping[str, str]) -> list[Field] | None:
    """Return the columns of a stream by the names that files have for them. One whose name stands
    for another column in the files is left out. `rename`: the stream's names by those of the files.

    Raises InvalidInput for a name that the stream does not have.
    """
    if known is None:
        return None
    names = [one["name"] for one in known]
    for old, new in rename.items():
        if new not in names:
            raise InvalidInput(
                "column_unknown",
                f"{called('rename')} calls column {old!r} of the files {new!r}, which the stream "
                f"does not have (it has {', '.join(names[:8])}); correct the name.",
            )
    in_files = {new: old for old, new in rename.items()}
    return [
        {**one, "name": in_files.get(one["name"], one["name"])}
        for one in known if one["name"] in in_files or one["name"] not in rename
    ]  # fmt: skip


@dataclass(frozen=True)
class Renamed:
    """Rows of files whose columns have other names. `names`: by those in the files."""

    values: Values
    names: Mapping[str, str]

    @classmethod
    def of(cls, values: Values, rename: Mapping[str, str]) -> "Renamed":
        """Check the names. Raises InvalidInput for one that the files do not have, and if two
        columns get one name."""
        there = [one["name"] for one in values.fields]
        for name in rename:
            if name not in there:
                raise InvalidInput(
                    "column_unknown",
                    f"{called('rename')} names column {name!r}, which the files do not have (they "
                    f"have {', '.join(there[:8])}); correct the name, or {leave_out('rename')}.",
                )
        renamed = cls(values, rename)
        taken: dict[str, str] = {}
        for old, one in zip(there, renamed.fields, strict=True):
            other = taken.setdefault(one["name"].lower(), old)
            if other != old:
                raise InvalidInput(
                    "columns_invalid",
                    f"columns {other!r} and {old!r} of the files would both be {one['name']!r} in "
                    f"the stream; give each its own name in {called('rename')}.",
                )
        check_user_columns([one["name"] for one in renamed.fields])
        return renamed

    @property
    def pieces(self) -> Sequence[Piece]:
        """The pieces of the files."""
        return self.values.pieces

    @property
    def fields(self) -> list[Field]:
        """The columns under the names of the stream."""
        fields = self.values.fields
        return [{**one, "name": self.names.get(one["name"], one["name"])} for one in fields]

    def tables(self, piece: Any) -> Iterator[pa.Table]:
        """Yield the rows of a piece, in whose marks columns are called as in the stream, too."""
        for table in self.values.tables(piece):
            names = [self.names.get(name, name) for name in table.column_names]
            found = table.rename_columns(names)
            if MALFORMED in names:
                marks = pa.chunked_array(
                    [self._marks(one) for one in found[MALFORMED].chunks], MARK
                )
                found = found.set_column(names.index(MALFORMED), MALFORMED, marks)
            yield found

    def _marks(self, marks: pa.StructArray) -> pa.StructArray:
        if marks.null_count == len(marks):
            return marks
        rows = marks.to_pylist()
        for one in rows:
            if one is not None:
                one["column"] = self.names.get(one["column"], one["column"])
        return pa.array(rows, MARK)
