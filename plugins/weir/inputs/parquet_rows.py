"""Parquet files as rows of values, without a JVM."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weir.inputs.files import Inputs
from weir.inputs.parquet_columns import parquet_fields
from weir.inputs.parquet_types import NANOSECONDS, UUID
from weir.inputs.rows import Rows, check_size, needs_spark, ranks_of
from weir.inputs.unreadable import damage_of, damaged, one_line, unreadable_now
from weir.kernel.schema import to_arrow
from weir.model.schema import SEQ, VOID, Field, is_open, simple_types
from weir.warehouse.filesystem import filesystem

_SPECIAL = {UUID, *NANOSECONDS}


def parquet_rows(inputs: Inputs) -> Rows:
    """Return the rows of Parquet files, a column that a file lacks null in it.

    Raises InvalidInput for columns that don't fit each other, for damaged files, and for what only
    Spark reads; UnreadableFile if the storage fails.
    """
    found = parquet_fields(inputs)
    for one in found.fields:
        if _SPECIAL & simple_types(one["type"]) or one["name"] in found.void_in:
            raise needs_spark(f"column {one['name']!r} has a type that Weir reads with Spark only")
    tables, size = [], 0
    for file in inputs.files:
        try:
            table, size = _read(inputs.root, file.path, found.fields, size)
        except (OSError, pa.ArrowException) as error:
            if (damage := damage_of(inputs.root, file.path, "parquet")) is not None:
                raise damaged(file.path, damage) from None
            raise unreadable_now(file.path, error) from None
        tables.append(table)
    ranks = [ranks_of(i, np.arange(table.num_rows)) for i, table in enumerate(tables)]
    try:
        whole = pa.concat_tables(tables)
    except pa.ArrowInvalid:
        raise needs_spark("the files have columns that differ within their types") from None
    return Rows(found.fields, [whole.append_column(SEQ, pa.array(np.concatenate(ranks)))])


def _read(root: str, path: str, fields: list[Field], before: int) -> tuple[pa.Table, int]:
    system, base = filesystem(root)
    with system.open_input_file(f"{base}/{path}") as source, pq.ParquetFile(source) as file:
        footer = file.metadata
        size = before + sum(
            footer.row_group(i).total_byte_size for i in range(footer.num_row_groups)
        )
        check_size(size)
        for i in range(len(footer.schema)):
            if footer.schema.column(i).physical_type == "INT96":
                raise needs_spark(f"the times of {path!r} are INT96, which Weir reads with Spark")
        table = file.read()
    columns = {}
    for one in fields:
        name, kind = one["name"], one["type"]
        if name not in table.column_names or kind == VOID:
            wanted = pa.null() if is_open(kind) else _arrow(one)
            columns[name] = pa.chunked_array([pa.nulls(table.num_rows, wanted)])
            continue
        column = table[name]
        if is_open(kind):
            columns[name] = column
            continue
        try:
            columns[name] = column if column.type == _arrow(one) else column.cast(_arrow(one))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise needs_spark(
                f"column {name!r} of {path!r} can't be read as {_arrow(one)} "
                f"({one_line(str(error))})"
            ) from None
    return pa.table(columns), size


def _arrow(one: Field) -> pa.DataType:
    return to_arrow([one]).field(0).type
