"""What is said while Spark works, before any task of it has ended."""

import re

import pytest
from pyspark.sql import functions as F

from tests.spark.installation import Installation
from weir.spark.base import progress


def test_one_long_task_says_how_many_rows_and_bytes_it_is_at(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.1)
    stream = weir.create(segments=8)
    numbers = weir.spark.range(0, 1_200_000, 1, 1)
    weir.append(stream, numbers.select(F.sha2(F.col("id").cast("string"), 512).alias("k")))
    form = r"appending to s/events: ([\d,]+) rows read, ([\d,]+) bytes written, 0 of 1 tasks done"
    found = [match for line in weir.said if (match := re.fullmatch(form, line))]
    rows, written = ([int(m[i].replace(",", "")) for m in found] for i in (1, 2))
    assert rows == sorted(rows)
    assert 0 < rows[-1] <= 1_200_000
    moments = sorted(set(written))
    assert len(moments) >= 3, weir.said  # the files of its segments, one after the other
    assert len(set(zip(rows, written, strict=True))) >= 4, weir.said
