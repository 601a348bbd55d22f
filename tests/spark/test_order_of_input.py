"""Events of a key are read in the order (file as given, row in the file), however Spark splits."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tests.spark.installation import Installation
from weir.errors import InvariantViolation
from weir.spark.inputs import find_inputs, read_inputs
from weir.spark.session import setting

KEYS = 40
# In the order given: neither that of the names nor that of the sizes.
SIZES = {"m-small": 300, "z-large": 28_000, "a-medium": 2_000}


def write(folder: Path, name: str, number: int, rows: int, format_: str) -> str:
    """A file whose rows say where they stand in it; large in bytes for its rows."""
    random = np.random.default_rng(number)
    table = pa.table(
        {
            "k": [f"key {i}" for i in random.integers(0, KEYS, rows)],
            "file": np.full(rows, number),
            "row": np.arange(rows),
            "payload": [random.bytes(120).hex() for _ in range(rows)],
        }
    )
    path = folder / f"{name}.{format_}"
    if format_ == "parquet":
        pq.write_table(table, path, row_group_size=2_000)
    elif format_ == "csv":
        pa.csv.write_csv(table, path)
    else:
        table.to_pandas().to_json(path, orient="records", lines=True)
    return path.name


def assert_input_order(events: pd.DataFrame, sizes: Sequence[int]) -> None:
    """Every row of every file once; those of a key in the order of the files and their rows."""
    assert len(events) == sum(sizes)
    place = events["file"].astype("int64") * 1_000_000 + events["row"].astype("int64")
    assert place.nunique() == sum(sizes)
    assert (place.groupby(events["k"]).diff().dropna() > 0).all()


@pytest.mark.parametrize("format_", ["parquet", "csv", "json"])
@pytest.mark.parametrize("split", ["128m", "1m"])
def test_files_of_very_different_size_are_read_in_the_order_given(
    weir: Installation, format_: str, split: str
) -> None:
    stream = weir.create(segments=3)
    root = Path(weir.input)
    paths = [
        write(root, name, i, rows, format_) for i, (name, rows) in enumerate(SIZES.items())
    ]
    inputs = find_inputs(paths, weir.settings.input_roots, format_, {})
    with setting(weir.spark, {"spark.sql.files.maxPartitionBytes": split}):
        tasks = read_inputs(weir.spark, inputs, None).rdd.getNumPartitions()
        assert tasks > len(SIZES), "the large file was not split: nothing would be tested"
        weir.appender.append_files(stream, inputs)
    facts = weir.check(stream, read=False)
    assert_input_order(facts, list(SIZES.values()))
    for order in ("segment", "stream"):
        assert_input_order(weir.read(stream, order, ["k", "file", "row"]), list(SIZES.values()))
