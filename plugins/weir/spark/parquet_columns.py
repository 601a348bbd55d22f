"""The columns of Parquet input files, from their footers and as Spark reads them."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow
import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrameReader

from weir.errors import InvalidInput
from weir.model.names import check_user_columns
from weir.model.schema import Field, same_type, show
from weir.spark.unreadable import first_cause, one_line
from weir.warehouse.filesystem import filesystem

if TYPE_CHECKING:
    from weir.spark.inputs import Inputs

# The codecs that come with Spark.
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"}


def parquet_columns(
    reader: DataFrameReader, inputs: "Inputs", paths: list[str]
) -> tuple[list[Field], frozenset[str]]:
    """Return the columns of all files, and the names of those that have times in nanoseconds. A
    column is null in files that lack it.

    `reader` reads nanoseconds as long (`weir.spark.nanoseconds`); the fields have the type of a
    time. Raises InvalidInput for a file that is not a Parquet file or that Spark can't read, and
    for a column that has several types.
    """
    system, base = filesystem(inputs.root)

    def footer(path: str) -> tuple[pyarrow.Schema, dict[str, str]]:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                file = pq.ParquetFile(source)
                found = file.schema_arrow.remove_metadata()
                times = _times_of(file.schema)
                groups = file.metadata.num_row_groups
                first = file.metadata.row_group(0) if groups else None
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidInput(
                "file_format_wrong",
                f"the input file {path!r} is not a Parquet file ({one_line(str(error))}); choose "
                "its real format.",
            ) from None
        for column, kind in times.items():
            if kind == "time":
                raise InvalidInput(
                    "column_type_unsupported",
                    f"column {column!r} of the input file {path!r} has times without a date, which "
                    "Spark can't read; write it as a string or a timestamp.",
                )
            if "." in column:
                raise InvalidInput(
                    "column_type_unsupported",
                    f"column {column!r} of the input file {path!r} is in nanoseconds, which Weir "
                    "reads only outside of structs, lists and maps; write it in microseconds (in "
                    "pandas: to_parquet with coerce_timestamps='us').",
                )
        codecs = {first.column(i).compression for i in range(first.num_columns)} if first else set()
        if unknown := codecs - _CODECS:
            raise InvalidInput(
                "compression_unsupported",
                f"the input file {path!r} is compressed with {min(unknown)}, which Spark can't "
                "read; compress it with snappy, zstd or gzip.",
            )
        return found, times

    with ThreadPoolExecutor(16) as pool:
        footers = list(pool.map(footer, [file.path for file in inputs.files]))
    fields: dict[str, tuple[Field, str, bool]] = {}  # with the first file, and if in nanoseconds
    seen: list[pyarrow.Schema] = []
    for i, (schema, times) in enumerate(footers):
        if any(schema.equals(other) for other in seen):
            continue
        seen.append(schema)
        check_user_columns(schema.names)
        try:
            found = reader.parquet(paths[i]).schema.jsonValue()["fields"]
        except (PySparkException, Py4JJavaError) as error:
            message = str(error) if isinstance(error, AnalysisException) else first_cause(error)
            raise InvalidInput(
                "file_invalid",
                f"Spark can't read the input file {inputs.files[i].path!r}: {one_line(message)}.",
            ) from None
        for one in found:
            name, exact = one["name"], one["name"] in times
            one = {**one, "type": times.get(name, one["type"])}
            before, origin, same = fields.setdefault(name, (one, inputs.files[i].path, exact))
            if not same_type(before["type"], one["type"]) or exact != same:
                raise InvalidInput(
                    "column_type_differs",
                    f"column {name!r} is {_show(one, exact)} in {inputs.files[i].path!r}, but "
                    f"{_show(before, same)} in {origin!r}; cast one of them, so that all files "
                    "have the same type.",
                )
    return (
        [one for one, _, _ in fields.values()],
        frozenset(name for name, (_, _, exact) in fields.items() if exact),
    )


def _show(field: Field, nanoseconds: bool) -> str:
    return show(field["type"]) + (" in nanoseconds" if nanoseconds else "")


def _times_of(schema: pq.ParquetSchema) -> dict[str, str]:
    """Return the columns that Spark reads in no type of their own: times of day ("time"), and times
    in nanoseconds with their type in Spark (INT96, which Spark reads, has no unit)."""
    found = {}
    for i in range(len(schema)):
        column = schema.column(i)
        kind = json.loads(column.logical_type.to_json())
        if kind["Type"] == "Time":
            found[str(column.path)] = "time"
        elif kind["Type"] == "Timestamp" and kind["timeUnit"] == "nanoseconds":
            utc = kind["isAdjustedToUTC"]
            found[str(column.path)] = "timestamp" if utc else "timestamp_ntz"
    return found
