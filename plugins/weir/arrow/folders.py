"""Write a table as Parquet below a folder, as Spark lays it out: files, or folders by values."""

import re
import uuid
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs

from weir.consumers.outputs import Output
from weir.errors import InvalidInput, Unavailable
from weir.kernel.bounds import bounded
from weir.kernel.values import date_text
from weir.warehouse.filesystem import filesystem, make_folder

_NULL = "__HIVE_DEFAULT_PARTITION__"
# What Spark escapes in the name of a folder.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{}\[\]^]""")


def write_folder(output: Output, folder: str, table: pa.Table) -> None:
    """Write the rows of a table into a folder of an output's root, in their order.

    Of a result without rows there is a file with its columns, unless its folders have values.
    Raises InvalidInput for a column without a type, Unavailable if the root takes no files.
    """
    for field in table.schema:
        if pa.types.is_null(field.type):
            raise InvalidInput(
                "column_type_unsupported",
                f"column {field.name!r} of the result for {output} has no value and no type, which "
                "Parquet readers refuse; cast it, for instance with .cast(pyarrow.string()), "
                "pandas' .astype('str') or Polars' .cast(polars.String), or drop it.",
            )
    system, base = filesystem(output.root)
    try:
        for below, rows in _by_values(table, output.partition_by):
            most = output.rows_per_file or max(1, rows.num_rows)
            make_folder(system, f"{base}/{folder}{below}")
            for number, first in enumerate(range(0, max(1, rows.num_rows), most)):
                part = rows.slice(first, most)
                _write(system, f"{base}/{folder}{below}", number, part, output.compression)
    except OSError as error:
        said = (str(error).strip().splitlines() or ["no reason was given"])[0].rstrip(".")
        raise Unavailable(
            "output_not_writable",
            f"the output root {output.root} can't be written ({said}); free space on its disk, or "
            "see to its rights and its storage, then try again.",
        ) from error


def _write(
    system: fs.FileSystem, folder: str, number: int, rows: pa.Table, compression: str
) -> None:
    path = f"{folder}part-{number:05}-{uuid.uuid4().hex}.c000.parquet"
    with system.open_output_stream(path) as out:
        pq.write_table(
            rows, out, compression=compression or "snappy", write_statistics=bounded(rows)
        )


def _by_values(table: pa.Table, names: Sequence[str]) -> Iterator[tuple[str, pa.Table]]:
    """Yield for each combination of values of some columns its folder, and its rows without these
    columns, in their order."""
    if not names:
        yield "", table
        return
    others = table.drop_columns(list(names))
    if not table.num_rows:
        return
    own = [str(i) for i in range(len(names))]  # whatever the columns are called
    keys = pa.table([_without_empty(_texts(table[name])) for name in names], names=own)
    keys = keys.append_column("row", pa.array(range(table.num_rows), pa.int64()))
    groups = keys.group_by(own, use_threads=False).aggregate([("row", "list")])
    for group in groups.to_pylist():
        values = zip(names, (group[one] for one in own), strict=True)
        below = "".join(f"{_escaped(name)}={_text(value)}/" for name, value in values)
        yield below, others.take(pa.array(group["row_list"], pa.int64()))


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the values of a column as Spark names folders by them."""
    if not pa.types.is_date32(column.type):
        return column.cast(pa.string())
    days = column.cast(pa.int32()).to_pylist()
    texts = [None if day is None else date_text(day) for day in days]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _without_empty(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with null for the texts that would get the folder of null."""
    there = pc.invert(pc.is_in(column, value_set=pa.array(["", _NULL])))
    return pc.if_else(there, column, pa.scalar(None, pa.string()))


def _text(value: str | None) -> str:
    return _NULL if value is None else _escaped(value)


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)
