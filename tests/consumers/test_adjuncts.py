"""Adjunct stores of batches that are read with pyarrow: their tables, and joins with the events."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import weir
from tests.consumers.test_reader import append
from tests.raises import raises
from tests.world.adjunct import FIELDS, Store
from tests.world.streams import Lane
from weir.adjunct.lookup import key_text
from weir.adjunct.publication import publish_build
from weir.controller.locks import read_stream
from weir.model.key_space import routing_steps
from weir.model.names import stream_name
from weir.model.schema import new_field
from weir.queries.adjunct.versions import AdjunctFile

VALUE = new_field("name", "string")


def publish(made: Store, warehouse: str, names: dict[str, str]) -> None:
    """Publish a version with these names by key, in a real file."""
    build = made.begun()
    keys = sorted(names, key=lambda key: routing_steps(key_text(key).encode()))
    hashes = [routing_steps(key.encode()) for key in keys]
    table = pa.table(
        {"_weir_key": keys, "name": [names[key] for key in keys], "_weir_hash": hashes,
         "_weir_clock": pa.array(range(len(keys)), pa.int64())}
    )  # fmt: skip
    path = f"{build.folder}table/part.parquet"
    file = Path(warehouse, path)
    file.parent.mkdir(parents=True)
    pq.write_table(table, file)
    one = AdjunctFile(path, len(keys), file.stat().st_size, hashes[0], hashes[-1])
    built = replace(made.built(build, files=[one]), fields=[*FIELDS, VALUE])
    publish_build(made.database, build, built)


@pytest.fixture
def dimension(store: weir.StreamStore) -> Store:
    store.create_stream("s/names", "k")
    store.append("s/names", [{"k": "key 1", "name": "one"}])
    append(store, [1, 2, 1, 3])
    name = stream_name("s/names")
    stream = store.database.transaction(lambda c: read_stream(c, name))
    return Store.made(Lane(store.database, name, stream.stream_id))


def test_a_store_is_joined_with_the_events_in_their_order(
    store: weir.StreamStore, dimension: Store
) -> None:
    with store.reader("g", adjuncts=[dimension.name]) as reader:
        with raises(f"needs_spark {dimension.name} weir-streams[spark]"):
            next(reader)
        publish(dimension, store.settings.warehouse, {"key 1": "one", "key 2": "two"})
        batch = next(reader)
        events = batch.events
        assert batch.adjunct(dimension.name).column_names == ["_weir_key", "name", "_clock"]
        joined = batch.enrich(events, dimension.name, "k", prefix="the_")
        assert joined.column_names == [*events.column_names, "the_name"]
        assert joined.drop_columns(["the_name"]) == events
        of = {"key 1": "one", "key 2": "two"}
        assert joined["the_name"].to_pylist() == list(map(of.get, events["k"].to_pylist()))
        for key in (
            "concat('key ', n)",
            pc.binary_join_element_wise("key", events["n"].cast("string"), " "),
        ):
            assert batch.enrich(events, dimension.name, key, prefix="the_") == joined
        inner = batch.enrich(events, dimension.name, "k", "inner")
        assert sorted(inner["name"].to_pylist()) == ["one", "one", "two"]
        for wrong, says in (({"on": "x"}, "join_invalid 'x' column"),
                            ({"on": pa.array(["key 1"])}, "join_invalid them"),
                            ({"on": "n"}, "column_type_unsupported string int64 cast"),
                            ({"on": "k", "how": "outer"}, "argument_invalid 'outer'"),
                            ({"on": "k", "as_of": True}, "needs_spark as_of")):  # fmt: skip
            with raises(says):
                batch.enrich(events, dimension.name, **wrong)
        with raises("join_invalid name columns"):
            batch.enrich(inner, dimension.name, "k")
        report = batch.commit({"stream:s/out": joined})
        assert report["adjuncts"] == {dimension.name: 1}
    assert store.count("s/out") == 4


def test_a_store_without_a_version_has_the_columns_that_it_will_have(
    store: weir.StreamStore, dimension: Store
) -> None:
    dimension.update(missing="empty")
    with store.reader("g", adjuncts=[dimension.name]) as reader:
        batch = next(reader)
        assert batch.adjuncts.versions == {dimension.name: None}
        assert batch.adjunct(dimension.name).column_names == ["_weir_key", "k", "name", "_clock"]
        assert batch.enrich(batch.events, dimension.name, "k", "inner", prefix="the_").num_rows == 0
