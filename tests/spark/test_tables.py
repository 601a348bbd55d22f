"""`weir.append` and `weir.read` without a JVM, beside Spark: the same streams and refusals."""

from pathlib import Path

import pyarrow as pa
import pytest

from tests.spark.installation import PLACE, Installation
from weir.programs.opening import shared

KEYS = ["a", "", "ä", "x" * 100, "Ω" * 33, "key 7"] + [f"key {n}" for n in range(300)]


def table(start: int, count: int) -> pa.Table:
    return pa.table(
        {
            "k": [KEYS[n % len(KEYS)] for n in range(start, start + count)],
            "n": pa.array(range(start, start + count), pa.int64()),
        }
    )


def append(weir: Installation, stream: object, rows: pa.Table, batch: str) -> int:
    done = shared(weir.settings).append(str(stream), rows, writer_id="test", batch_id=batch)
    return 0 if done.repeated else done.events


def test_what_was_appended_without_a_jvm_is_read_by_spark_in_every_order(
    weir: Installation,
) -> None:
    stream = weir.create(segments=4)
    assert append(weir, stream, table(0, 1000), "one") == 1000
    assert append(weir, stream, table(0, 1000), "one") == 0
    weir.scale(stream, ["1.0"], parts=3)
    weir.append(stream, weir.spark.createDataFrame(table(1000, 500).to_pandas()))
    assert append(weir, stream, table(1500, 700), "two") == 700
    facts = weir.check(stream, read=True)
    assert sorted(facts["n"]) == list(range(2200))


@pytest.mark.release
def test_frames_without_rows_are_appends_of_nothing(weir: Installation) -> None:
    stream = weir.create(segments=2)
    none = weir.spark.range(9).selectExpr("'x' k", "id n").where("n < 0")
    for done in (weir.append(stream, []), weir.append(stream, none)):
        assert (done.events, done.files) == (0, 0)
    assert weir.frame(stream).columns == ["k", "n", *PLACE]
    weir.append(stream, [("b", 2)])
    assert len(weir.check(stream, read=True)) == 1
    left = {path.name for path in Path(weir.settings.warehouse).rglob("_weir_tx=*")}
    assert left == {"_weir_tx=3"}, "nor folders"
