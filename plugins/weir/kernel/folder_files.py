"""The files of a folder that people read as plain Parquet: an output of a consumer, a version of an
adjunct store. Programs write them so in their own process, and Spark in its tasks.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.files import Bounds, GroupedFiles, ParquetFile
from weir.kernel.schema import cast_column, to_arrow
from weir.kernel.stage import GROUP_ROWS
from weir.kernel.values import date_text
from weir.kernel.writer import slabs
from weir.model.schema import Field
from weir.warehouse.filesystem import not_writable

ANY = sys.maxsize  # rows of a file
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how a folder is named for null, and for ""
# What Spark escapes in the name of a folder.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]^]""")
_SPARKS = "org.apache.spark.sql.parquet.row.metadata"  # where Spark says and looks for its types


class FolderFile(NamedTuple):
    """A file that was written: its path below the root, and, if the folder has a column of hashes,
    the lowest and the highest."""

    path: str
    rows: int
    bytes: int
    low: int = 0
    high: int = 0


@dataclass(frozen=True)
class Folder:
    """How rows become the files of a folder. Processes may send it to each other.

    `path`: below the root, ending in a slash. `columns`: those of the rows, in Spark's JSON form;
    the files have them under the same names. `partition_by`: columns whose values name folders, in
    place of being in the files. `file_rows`: of a file; None for one file of each task. `hashes`: a
    column of whose values each file says the lowest and the highest.
    """

    root: str
    path: str
    columns: list[Field]
    partition_by: tuple[str, ...] = ()
    compression: str = "snappy"
    file_rows: int | None = ANY
    group_rows: int = GROUP_ROWS
    hashes: str = ""
    is_output: bool = False

    def write(self, batches: Iterable[pa.RecordBatch]) -> tuple[FolderFile, ...]:
        """Write rows, and return the files that have them. Raises BadRows for a text that is not
        UTF-8, Unavailable if the root takes no files."""
        files: GroupedFiles[str, FolderFile] = GroupedFiles(
            self._opened, self.group_rows, self.file_rows
        )
        try:
            for table in slabs(batches):
                rows = pa.table(
                    [cast_column(table[one.name], one) for one in self._schema(self.columns)],
                    names=table.column_names,
                )
                for below, some in self._by_values(rows):
                    for batch in some.combine_chunks().to_batches():
                        files.add(below, batch)
            return files.end()
        except OSError as error:
            raise not_writable(self.root, error, is_output=self.is_output) from error

    def write_columns(self) -> FolderFile:
        """Write a file that has the columns and no rows. Raises Unavailable as `write`."""
        try:
            return self._opened("", 0, self._schema(self._kept()), True).end()
        except OSError as error:
            raise not_writable(self.root, error, is_output=self.is_output) from error

    def _kept(self) -> list[Field]:
        return [one for one in self.columns if one["name"] not in self.partition_by]

    def _schema(self, columns: list[Field]) -> pa.Schema:
        return to_arrow([{**one, "nullable": True} for one in columns])

    def _opened(self, below: str, chunk: int, schema: pa.Schema, bounds: Bounds) -> "_Open":
        types = json.dumps({"type": "struct", "fields": self._kept()})
        file = ParquetFile(
            self.root, f"{self.path}{below}", chunk, schema.with_metadata({_SPARKS: types}),
            (self.hashes,), bounds, self.compression, small_decimals=True,
        )  # fmt: skip
        return _Open(file, self.hashes)

    def _by_values(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield for each combination of values that name folders its folder, and its rows, in
        their order."""
        names = self.partition_by
        if not names:
            yield "", table
            return
        others, own = table.drop_columns(list(names)), [str(i) for i in range(len(names))]
        keys = pa.table([_without_empty(_texts(table[name])) for name in names], names=own)
        keys = keys.append_column("row", pa.array(range(table.num_rows), pa.int64()))
        groups = keys.group_by(own, use_threads=False).aggregate([("row", "list")])
        rows = groups["row_list"].combine_chunks()
        for i, values in enumerate(zip(*(groups[one].to_pylist() for one in own), strict=True)):
            named = zip(names, values, strict=True)
            below = "".join(f"{_escaped(name)}={_text(value)}/" for name, value in named)
            yield below, others.take(rows[i].values)


class _Open:
    """A file that is being written, and what is known of its rows."""

    def __init__(self, file: ParquetFile, hashes: str) -> None:
        self._file, self._hashes, self._rows = file, hashes, 0
        self._ends: list[int] = []

    def write(self, rows: pa.Table) -> None:
        """Write rows as one row group."""
        self._file.write(rows)
        self._rows += rows.num_rows
        if self._hashes:
            found = pc.min_max(rows[self._hashes])
            self._ends += [found["min"].as_py(), found["max"].as_py()]

    def end(self) -> FolderFile:
        """End the file, and return what to say of it."""
        size, *_ = self._file.end()
        return FolderFile(
            self._file.path,
            self._rows,
            size,
            min(self._ends, default=0),
            max(self._ends, default=0),
        )


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column as Spark names folders by them."""
    if not pa.types.is_date32(column.type):
        return column.cast(pa.string())
    days = pc.dictionary_encode(column.cast(pa.int32())).combine_chunks()
    texts = pa.array([date_text(day) for day in days.dictionary.to_pylist()], pa.string())
    return pa.chunked_array([texts.take(days.indices)])


def _without_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with null for the texts that Spark gives the folder of null."""
    there = pc.invert(pc.is_in(column, value_set=pa.array(["", NO_VALUE])))
    return pc.if_else(there, column, pa.scalar(None, pa.string()))


def _text(value: str | None) -> str:
    return NO_VALUE if value is None else _escaped(value)


def values_in(path: str) -> dict[str, str | None]:
    """Return the values by which the folders of a path are named, by their columns."""
    parts = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {
        unquote(name): None if value == NO_VALUE else unquote(value) for name, _, value in parts
    }


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
