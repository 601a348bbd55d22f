"""Random values that Spark has written come back from a stream exactly."""

from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.chance import random_for
from tests.inputs.conftest import Files
from tests.inputs.conftest import files as files
from tests.inputs.test_texts_of_writers import check, table


@pytest.mark.release
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_what_spark_wrote_is_in_the_stream(files: Files, spark: SparkSession, kind: str) -> None:
    rows: pa.Table = table(random_for("spark", kind))
    # Spark cuts times to milliseconds if it is not told otherwise.
    times = dict.fromkeys(("timestampFormat", "timestampNTZFormat"), "yyyy-MM-dd HH:mm:ss.SSSSSS")
    white = dict.fromkeys(("ignoreLeadingWhiteSpace", "ignoreTrailingWhiteSpace"), False)
    options: dict[str, Any] = {"header": True, "escape": '"', **white} if kind == "csv" else {}
    folder = files.root / "written"
    frame = spark.createDataFrame(rows).coalesce(1)
    frame.write.format(kind).options(**times, **options).save(str(folder))
    (part,) = folder.glob(f"part-*.{kind}")
    part.rename(files.root / f"spark.{kind}")
    check(files, f"spark.{kind}", rows)
