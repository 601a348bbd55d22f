"""Keys that nothing could name later are refused, or set aside, by every door of Spark."""

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException

from tests.released import only
from tests.spark.installation import Installation
from weir.errors import BadRows
from weir.model.names import LONGEST_KEY, stream_name
from weir.spark.reads.source import register

LONGEST = "\u00e4" * (LONGEST_KEY // 2)
KEYS = [LONGEST, LONGEST + "x", "a\0b", "", "y" * 1_000_000]


@pytest.mark.parametrize("door", ["frame", *only("format", of=["format", "json"])])
def test_keys_that_are_none_are_refused_or_set_aside(
    weir: Installation, tmp_path: Path, door: str
) -> None:
    config = tmp_path / "weir.toml"
    settings = {"database": weir.settings.database, "warehouse": weir.settings.warehouse}
    config.write_text("".join(f"{key} = {json.dumps(one)}\n" for key, one in settings.items()))
    register(weir.spark)
    strict, kind = weir.create("s/strict"), weir.create("s/kind", on_bad_rows="quarantine")
    frame = weir.spark.createDataFrame([(key, n) for n, key in enumerate(KEYS)], "k string, n long")

    def put(name: str) -> None:
        if door == "frame":
            weir.append(stream_name(name), frame)
        elif door == "json":
            path = Path(weir.input) / "keys.json"
            lines = [json.dumps({"k": key, "n": n}) for n, key in enumerate(KEYS)]
            path.write_text("\n".join(lines))
            weir.ingest(stream_name(name), [path.name], "json")
        else:
            options = {"config": str(config), "writerId": "w", "batchId": name}
            frame.write.format("weir").mode("append").options(**options).save(name)

    with pytest.raises((BadRows, PySparkException), match="3 of the rows do not fit"):
        put("s/strict")
    assert weir.frame(strict).count() == 0
    put("s/kind")
    assert sorted(row.n for row in weir.frame(kind).collect()) == [0, 3]
    rejected = weir.frame(kind.rejected).collect()
    assert sorted(json.loads(row.row)["n"] for row in rejected) == [1, 2, 4]
    assert {row.column for row in rejected} == {"k"}
    assert all("NUL" in row.type for row in rejected)
