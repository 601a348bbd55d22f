"""The columns of Parquet input files, from their footers as data (docs/decisions/0050)."""

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from weir.inputs.files import Inputs
from weir.inputs.parquet_columns import ParquetFields, as_scanned, parquet_fields
from weir.inputs.parquet_types import NANOSECONDS, UUID, each_type
from weir.model.schema import VOID, same_type
from weir.spark.base.conversion import converted
from weir.spark.base.exact import quoted
from weir.spark.base.nanoseconds import in_microseconds


@dataclass(frozen=True)
class ParquetColumns(ParquetFields):
    """The columns of some Parquet files: what Spark reads, and what they become."""

    @property
    def scanned(self) -> StructType:
        """Return the types in which Spark reads the files. Columns without a value are not read."""
        given = [one for one in self.fields if one["type"] != VOID]
        fields = [{**one, "type": each_type(one["type"], as_scanned)} for one in given]
        return StructType.fromJson({"type": "struct", "fields": fields})

    def parsed(self, frame: DataFrame, malformed: str) -> DataFrame:
        """Return the rows of a frame that was scanned, in Spark's types. If there are times in
        nanoseconds, rows that would lose digits of them are marked in a column `malformed`."""
        names = [field["name"] for field in self.fields]
        kinds = [field["type"] for field in self.fields]
        if all(same_type(kind, each_type(kind, as_scanned)) for kind in kinds):
            return frame
        columns = [
            converted(column, kind, each_type(kind, _kept)).alias(name)
            for column, kind, name in zip(quoted(names), kinds, names, strict=True)
        ]
        more = quoted([name for name in frame.columns if name not in set(names)])
        frame = frame.select(*columns, *more)
        times = {
            name: NANOSECONDS[kind]
            for name, kind in zip(names, kinds, strict=True)
            if isinstance(kind, str) and kind in NANOSECONDS
        }
        return in_microseconds(frame, names, times, malformed) if times else frame


def parquet_columns(inputs: Inputs) -> ParquetColumns:
    """Return the columns of all files, as Spark reads them. Raises as `parquet_fields`."""
    found = parquet_fields(inputs)
    return ParquetColumns(found.fields, found.by_row, found.void_in)


def _kept(kind: str) -> str:
    return "string" if kind == UUID else kind
