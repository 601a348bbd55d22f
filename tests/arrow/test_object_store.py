"""An installation on an object store that speaks S3, with credentials: what needs no JVM."""

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import weir
from tests.raises import raises
from tests.warehouse.object_store import ObjectStore, object_store
from weir.arrow.tail import tail_of
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.retention.garbage import sweep
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings

NAME = "shop/orders"


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("no_proxy", "http_proxy", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield store


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    create_stream(database, stream_name(NAME), routing_key="k", segments=2, request_id="create")
    return replace(settings, warehouse="s3a://lake/weir")


def test_streams_are_appended_read_and_swept(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    for batch in ("1", "2", "2"):
        rows = pa.table({"k": [f"k{n}" for n in range(10)], "n": range(10)})
        weir.append(NAME, rows, writer_id="me", batch_id=batch, settings=here)
    found = weir.read(NAME, settings=here)
    assert sorted(found["n"].to_pylist()) == sorted([*range(10)] * 2)
    assert tail_of(database, here, stream_name(NAME), 3).num_rows == 3
    there = {name for name in lake.objects if name.endswith(".parquet")}
    assert {name.rpartition("/_weir_segment")[0] for name in there} == {
        "weir/1/_weir_tx=1/_weir_attempt=1", "weir/1/_weir_tx=2/_weir_attempt=1",
    }  # fmt: skip
    truncate_before(database, stream_name(NAME), "tail", dry_run=False, request_id="truncate")
    assert sweep(database, here.warehouse, 0.0)["failed"] == []
    assert not [name for name in lake.objects if name.endswith(".parquet")]
    assert weir.read(NAME, settings=here).num_rows == 0


def test_a_wrong_key_and_a_missing_bucket_are_said_before_anything_is_written(
    database: Database, here: Settings, lake: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"k": ["a"]})
    other = replace(here, warehouse="s3://pond/weir")
    with raises("warehouse_not_writable s3://pond/weir 'pond'"):
        weir.append(NAME, rows, writer_id="me", batch_id="1", settings=other)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    with raises("warehouse_unreadable s3a://lake/weir 'lake' AWS ACCESS_DENIED"):
        weir.append(NAME, rows, writer_id="me", batch_id="2", settings=here)
    assert lake.objects == {}
