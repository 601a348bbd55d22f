"""The columns of Parquet input files, from their footers and as Spark reads them."""

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


def parquet_columns(reader: DataFrameReader, inputs: "Inputs", paths: list[str]) -> list[Field]:
    """Return the columns of all files. A column is null in files that lack it.

    Raises InvalidInput for a file that is not a Parquet file or that Spark can't read, and for a
    column that has several types.
    """
    system, base = filesystem(inputs.root)

    def footer(path: str) -> pyarrow.Schema:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                file = pq.ParquetFile(source)
                found = file.schema_arrow.remove_metadata()
                nanoseconds = _in_nanoseconds(file.schema)
                groups = file.metadata.num_row_groups
                first = file.metadata.row_group(0) if groups else None
        except (pyarrow.ArrowException, OSError) as error:
            raise InvalidInput(
                "file_format_wrong",
                f"the input file {path!r} is not a Parquet file ({one_line(str(error))}); choose "
                "its real format.",
            ) from None
        if nanoseconds:
            raise InvalidInput(
                "column_type_unsupported",
                f"column {nanoseconds!r} of the input file {path!r} is in nanoseconds, which Spark "
                "can't read; write it in microseconds (in pandas: to_parquet with "
                "coerce_timestamps='us').",
            )
        codecs = {first.column(i).compression for i in range(first.num_columns)} if first else set()
        if unknown := codecs - _CODECS:
            raise InvalidInput(
                "compression_unsupported",
                f"the input file {path!r} is compressed with {min(unknown)}, which Spark can't "
                "read; compress it with snappy, zstd or gzip.",
            )
        return found

    with ThreadPoolExecutor(16) as pool:
        footers = list(pool.map(footer, [file.path for file in inputs.files]))
    fields: dict[str, tuple[Field, str]] = {}
    seen: list[pyarrow.Schema] = []
    for i, schema in enumerate(footers):
        if any(schema.equals(other) for other in seen):
            continue
        seen.append(schema)
        check_user_columns(schema.names)
        try:
            found = reader.parquet(paths[i]).schema.jsonValue()["fields"]
        except (PySparkException, Py4JJavaError) as error:
            said = str(error) if isinstance(error, AnalysisException) else first_cause(error)
            raise InvalidInput(
                "file_invalid",
                f"Spark can't read the input file {inputs.files[i].path!r}: {one_line(said)}.",
            ) from None
        for one in found:
            before, origin = fields.setdefault(one["name"], (one, inputs.files[i].path))
            if not same_type(before["type"], one["type"]):
                raise InvalidInput(
                    "column_type_differs",
                    f"column {one['name']!r} is {show(one['type'])} in {inputs.files[i].path!r}, "
                    f"but {show(before['type'])} in {origin!r}; cast one of them, so that all "
                    "files have the same type.",
                )
    return [one for one, _ in fields.values()]


def _in_nanoseconds(schema: pq.ParquetSchema) -> str:
    """Return the first column with timestamps in nanoseconds (INT96, which Spark reads, has no
    unit)."""
    for i in range(len(schema)):
        column = schema.column(i)
        kind = str(column.logical_type)
        if kind.startswith("Timestamp") and "=nanoseconds" in kind:
            return str(column.path)
    return ""
