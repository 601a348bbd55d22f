"""A stream that refuses the keys that were erased from it does so however Spark appends."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

import weir as library
from tests.raises import raises
from tests.released import only
from tests.spark.installation import Installation
from tests.world.streams import run
from weir.model.names import StreamName

GONE = [f"gone {n}" for n in range(300)]


def refusing(weir: Installation, name: str, erased: list[str], **how: Any) -> StreamName:
    stream = weir.create(name, refuse_erased=True, **how)
    run(weir.database, """SELECT note_erased_keys(stream_id, CAST(:keys AS text[])) FROM stream
        WHERE stream_name = :name""", keys=erased, name=name)  # fmt: skip
    return stream


def parquet(weir: Installation) -> list[Path]:
    return list(Path(weir.settings.warehouse).rglob("*.parquet"))


@pytest.mark.parametrize("segments", only(3, of=[1, 3]))
@pytest.mark.parametrize("how", only("files", of=["frame", "shuffled", "files"]))
def test_an_append_with_erased_keys_is_refused_and_its_files_are_deleted(
    weir: Installation, segments: int, how: str
) -> None:
    stream = refusing(weir, "s/few", ["gone 7", "x"], segments=segments, on_missing_key="spread")
    keys = "if(id = 3, NULL, if(id % 2 = 0, concat('gone ', id), concat('Gone ', id)))"
    frame = weir.spark.range(0, 40, 1, 4).selectExpr(f"{keys} AS k", "id AS n")
    frame = frame.union(weir.spark.sql("SELECT 'gone 7' AS k, 99L AS n"))
    if how == "shuffled":
        frame = frame.repartition(3)

    def append() -> int:
        if how != "files":
            return weir.append(stream, frame).events
        folder = Path(weir.input) / "rows"
        frame.write.mode("overwrite").parquet(str(folder))
        return weir.ingest(stream, [str(folder)]).events

    with raises("key_erased 1 k s/few update_stream refuse_erased no") as refused:
        append()
    assert "gone" not in str(refused.value)
    assert parquet(weir) == []
    assert weir.value("SELECT state FROM transaction") == "aborted"
    frame = frame.where("n < 40")
    assert append() == 40
    facts = weir.facts(stream)
    assert sorted(facts["n"]) == list(range(40))
    assert not [name for name in facts.columns if "erased" in name]


@pytest.mark.release
def test_a_key_with_a_transform_is_compared_by_its_value(
    weir: Installation,
) -> None:
    stream = refusing(weir, "s/many", [f"{key}!" for key in GONE], key="concat(k, '!')", segments=2)
    rows = [(key, n) for n, key in enumerate([*GONE, *GONE[:5], "ann", "bob"])]
    with raises("key_erased 305 concat s/many"):
        weir.append(stream, rows)
    assert weir.append(stream, rows[-2:]).events == 2


@pytest.mark.release
def test_writes_of_the_format_weir_are_refused(
    weir: Installation, config: str, tmp_path: Path
) -> None:
    stream = refusing(weir, "s/few", ["gone 7"], segments=2)
    options = {"config": config, "writerId": "w"}
    frame = weir.spark.range(0, 10, 1, 2).selectExpr("concat('gone ', id) AS k", "id AS n")
    with pytest.raises(PySparkException, match="1 event has a routing key"):
        frame.write.format("weir").mode("append").options(**options, batchId="1").save(str(stream))
    frame.write.parquet(str(tmp_path / "in"))
    source = weir.spark.readStream.schema("k string, n long").parquet(str(tmp_path / "in"))
    write = source.writeStream.format("weir").trigger(availableNow=True)
    write = write.options(**options, checkpointLocation=str(tmp_path / "check"))
    with pytest.raises(PySparkException, match="1 event has a routing key"):
        write.start(str(stream)).awaitTermination()
    run(weir.database, "UPDATE stream SET refuse_erased = false")
    write.start(str(stream)).awaitTermination()
    with library.open(settings=weir.settings) as store:
        assert store.count(str(stream)) == 10
