"""Columns that files call by other names than their stream does."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from weir.errors import InvalidInput
from weir.front_ends import called, give, leave_out
from weir.inputs.rows import MARK, Piece, Values
from weir.kernel.rejected import MALFORMED
from weir.model.names import check_user_columns, look_alike
from weir.model.new_columns import meant
from weir.model.schema import Field
from weir.model.transform_nodes import written

_OF_NAMES = ("column_unknown", "column_missing", "columns_invalid")  # errors of names


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
                f"does not have (it has {', '.join(names[:8])}){look_alike(new, names)}; correct "
                "the name, or add the column to the stream first.",
            )
    in_files = {new: old for old, new in rename.items()}
    return [
        {**one, "name": in_files.get(one["name"], one["name"])}
        for one in known if one["name"] in in_files or one["name"] not in rename
    ]  # fmt: skip


@contextmanager
def or_renamed(known: list[Field] | None, given: list[Field]) -> Iterator[None]:
    """Let an error of the block, for columns that files have (`given`) and their stream (`known`)
    has not, or the other way round, say how to call a column otherwise."""
    try:
        yield
    except InvalidInput as error:
        there, here = ([one["name"] for one in some] for some in (known or [], given))
        lacking = [name for name in there if name not in here]
        new = next((name for name in here if name not in there), None)
        if lacking and new is not None and error.code in _OF_NAMES:
            to = meant(new, lacking) or (lacking[0] if len(lacking) == 1 else "COLUMN")
            way = give(rename=[f"{written(new)} -> {written(to)}"])
            said = error.sentence.removesuffix(".")
            error.sentence = f"{said}; if the files only call a column otherwise, {way}."
            error.args = (error.code, error.sentence)
        raise


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
                    f"have {', '.join(map(written, there[:8]))}){look_alike(name, there)}; correct "
                    f"the name, or {leave_out('rename')}.",
                )
        renamed = cls(values, rename)
        taken: dict[str, str] = {}
        for old, one in zip(there, renamed.fields, strict=True):
            other = taken.setdefault(one["name"].lower(), old)
            if other != old:
                raise InvalidInput(
                    "columns_invalid",
                    f"columns {other!r} and {old!r} of the files would both be {one['name']!r} in "
                    f"the stream; give each its own name in {called('rename')}, or append the "
                    "files that have the one and those that have the other separately.",
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
