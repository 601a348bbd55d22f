"""A file of a store that is missing is told with its cause, however a consumer joins the store."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame

from tests.raises import raises
from tests.spark.adjunct_world import EVENTS, LONG, WAYS, Store, World
from tests.spark.installation import Installation
from weir.model.names import stream_name

pytestmark = pytest.mark.release


def files_of(weir: Installation, kind: str) -> list[Path]:
    rows = weir.query("SELECT path FROM adjunct_file WHERE kind = :kind", kind=kind)
    return [Path(weir.settings.warehouse, row.path) for row in rows]


def joined(store: Store, **how: Any) -> Callable[..., DataFrame]:
    def function(events: DataFrame, adjuncts: Any) -> DataFrame:
        found: DataFrame = adjuncts.enrich(events, store.name, "k", prefix="v_", **how)
        return found

    return function


def test_a_consumer_says_why_it_can_not_read_a_store(weir: Installation, tmp_path: Path) -> None:
    world = World.beside_events(weir)
    store = world.store(WAYS["whole"], history=LONG)
    world.append([("a", 1, "x")])
    store.build()
    world.append([("a", 2, "x"), ("b", 2, "x")])
    weir.append(EVENTS, [("a", 1), ("b", 2)])
    store.build()
    there = {file: file.read_bytes() for kind in ("table", "history")
             for file in files_of(weir, kind)}  # fmt: skip
    ways = {"a join": joined(store), "an as-of join": joined(store, as_of=True)}

    def run(name: str, of: Installation = weir) -> Any:
        consumer = of.consumer("readers", ways[name], "stream:s/out", adjuncts=[store.name])
        return consumer.run()

    def put_back() -> None:
        for file, content in there.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

    copy = tmp_path / "copy"
    shutil.copytree(weir.settings.warehouse, copy)
    elsewhere = Installation(weir.spark, weir.database, replace(weir.settings, warehouse=str(copy)))
    for name in ways:
        for file in there:
            file.unlink()
        with raises(f"file_missing {store.name} missing define the store anew"):
            run(name)
        put_back()
        for file, content in there.items():
            file.write_bytes(content[: len(content) // 2])
            Path(file.parent, f".{file.name}.crc").unlink(missing_ok=True)
        with raises(f"file_missing {store.name} damaged"):
            run(name)
        put_back()
        with raises("warehouse_elsewhere copy"):
            run(name, elsewhere)
        assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
    assert run("an as-of join")["events"] == 2
    assert len(weir.read(stream_name("s/out"))) == 2
