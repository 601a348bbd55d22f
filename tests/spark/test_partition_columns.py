"""Folders whose names hold a column, as Hive, Spark and DuckDB write them."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.installation import Installation
from weir.controller.transactions import Committed
from weir.model.names import StreamName


def write(weir: Installation, path: str, format_: str = "parquet", **columns: list[Any]) -> str:
    """A file below the input root."""
    file = Path(weir.input) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if format_ == "parquet":
        pq.write_table(pa.table(columns), file)
    elif format_ == "json":
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        lines = [",".join(map(str, row.values())) for row in rows]
        file.write_text("\n".join([",".join(columns), *lines]) + "\n")
    return path


def read(weir: Installation, stream: StreamName, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of the stream, in write order."""
    return [tuple(row) for row in weir.frame(stream, "stream").select(*columns).collect()]


@pytest.mark.release
def test_the_columns_of_folders_are_kept_in_every_format_and_order(weir: Installation) -> None:
    for format_ in ("parquet", "csv", "json"):
        stream = weir.create(f"s/{format_}", segments=1)
        for number, day in enumerate(("2026-01-02", "2026-01-01", "a%2Fb%20c")):
            write(weir, f"{format_}/dt={day}/hour=0{number}/x.{format_}", format_,
                  k=["a", "b"], n=[number, number])  # fmt: skip
        done: Committed = weir.ingest(stream, [format_], format_)
        assert done.events == 6
        days = [("2026-01-01", "01", 1), ("2026-01-02", "00", 0), ("a/b c", "02", 2)]
        assert read(weir, stream, "dt", "hour", "n") == [day for day in days for _ in "ab"]
        one = write(weir, f"{format_}-2/dt=__HIVE_DEFAULT_PARTITION__/hour=7/x.{format_}", format_,
                    k=["a"], n=[9])  # fmt: skip
        assert weir.ingest(stream, [one], format_).events == 1  # a file that is named alone
        assert read(weir, stream, "dt", "hour", "n")[-1] == (None, "7", 9)
