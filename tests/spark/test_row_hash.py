"""The hash of a row is the same number whichever engine computes it."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.chance import cases, random_for
from tests.digests import rows_of_every_type
from tests.spark.spark_hashes import row_hash
from weir.kernel.row_hash import row_hashes
from weir.kernel.schema import from_arrow
from weir.model.schema import SEQ
from weir.spark.base.session import active, resolving_session

pytestmark = pytest.mark.jvm


@pytest.mark.random
def test_rows_of_every_type_have_the_same_hash_in_spark_and_in_pyarrow(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = rows_of_every_type(random_for("row hash"), cases(4_000))
    ranks = np.arange(len(given)) * 8_589_934_592 + 1
    pq.write_table(given.append_column(SEQ, pa.array(ranks)), tmp_path / "x.parquet")
    resolving = resolving_session(spark)
    with active(resolving):
        rows = resolving.read.parquet(str(tmp_path / "x.parquet"))
        hashed = rows.select(F.col(SEQ), row_hash(from_arrow(given.schema)).alias("hash"))
        found: dict[int, int] = {row[0]: row[1] for row in hashed.collect()}
    table = pq.read_table(tmp_path / "x.parquet").combine_chunks()
    expected = row_hashes(table.to_batches()[0], sorted(given.column_names)).view(np.int64)
    assert found == dict(zip(ranks.tolist(), expected.tolist(), strict=True))
