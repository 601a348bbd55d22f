"""An installation on an object store that speaks S3, with credentials: what needs no JVM."""

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import weir
from tests.raises import raises
from tests.warehouse.object_store import ObjectStore
from tests.world.garbage import sweep
from weir.arrow.tail import tail_of
from weir.controller.streams import create_stream
from weir.controller.transactions import begin
from weir.database.connection import Database
from weir.kernel.attempt import Attempt
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.retention.manual_truncation import truncate_before
from weir.settings import Settings

NAME = "shop/orders"


@pytest.fixture
def here(database: Database, settings: Settings, lake: ObjectStore) -> Settings:
    create_stream(database, stream_name(NAME), routing_key="k", segments=2, request_id="create")
    return replace(settings, warehouse="s3a://lake/weir")


def test_streams_are_appended_read_and_swept(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    for batch in ("1", "2", "2"):
        rows = pa.table({"k": [f"k{n}" for n in range(10)], "n": range(10)})
        shared(here).append(NAME, rows, writer_id="me", batch_id=batch)
    found = shared(here).read(NAME)
    assert sorted(found["n"].to_pylist()) == sorted([*range(10)] * 2)
    assert tail_of(database, here, stream_name(NAME), 3).num_rows == 3
    there = {name for name in lake.objects if name.endswith(".parquet")}
    assert {name.rpartition("/_weir_segment")[0] for name in there} == {
        "weir/1/_weir_tx=1/_weir_attempt=1", "weir/1/_weir_tx=2/_weir_attempt=1",
    }  # fmt: skip
    truncate_before(database, stream_name(NAME), "tail", dry_run=False, request_id="truncate")
    assert sweep(database, here.warehouse, 0.0)["failed"] == []
    assert lake.objects.keys() == {"weir/_weir_installation"}
    assert shared(here).read(NAME).num_rows == 0


@pytest.mark.parametrize("segments", [1, 16])
def test_each_operation_makes_as_many_requests_as_there_are_files_and_a_few(
    database: Database, here: Settings, lake: ObjectStore, segments: int
) -> None:
    name = f"shop/in_{segments}"
    create_stream(
        database, stream_name(name), routing_key="k", segments=segments, request_id="make"
    )
    rows = pa.table({"k": [f"k{n}" for n in range(1000)], "n": range(1000)})
    shared(here).append(name, rows, writer_id="me", batch_id="1")

    lake.asked.clear()
    shared(here).append(name, rows, writer_id="me", batch_id="2")
    methods = Counter(asked.split()[0] for asked in lake.asked)
    # The marker (twice, as pyarrow asks for its size first), the folder before and after writing.
    assert methods == {"PUT": segments, "GET": 3, "HEAD": 1}
    assert not [path for path in lake.objects if path.endswith("/")]

    lake.asked.clear()
    with weir.open(here.database, here.warehouse) as store:
        store.create_reader_group("readers", [name], subscriber=False)
        lake.asked.clear()
        for batch in store.reader("readers"):
            assert batch.events.num_rows == 2000
            batch.commit({})
    # The size of each file, its footer, its columns; and the marker.
    assert len(lake.asked) == 3 * 2 * segments + 2

    truncate_before(database, stream_name(name), "tail", dry_run=False, request_id="truncate")
    lake.asked.clear()
    assert sweep(database, here.warehouse, 0.0)["deleted"] == 2 * segments
    asked = [one.split()[0] for one in lake.asked if "_weir_installation" not in one]
    # The size and the end of each file are compared with the record before it goes.
    assert Counter(asked) == {"HEAD": 2 * segments, "GET": 2 * segments, "POST": 1}
    assert asked[-1] == "POST"
    assert len(lake.asked) == 6 + 4 * segments
    assert lake.objects.keys() == {"weir/_weir_installation"}


def test_what_a_killed_append_leaves_is_swept_with_its_unfinished_uploads(
    database: Database, here: Settings, lake: ObjectStore
) -> None:
    attempt = begin(
        database, stream_name(NAME), writer_id="me", batch_id="1", fingerprint="table",
        lease=60.0, source="test",
    )  # fmt: skip
    assert isinstance(attempt, Attempt)
    lake.objects |= {f"weir/{attempt.folder}{i}.parquet": b"" for i in range(2300)}
    lake.uploads["u"] = (f"weir/{attempt.folder}part.parquet", {1: b"half"})
    lake.objects["weir/other"] = b""
    rows = pa.table({"k": ["a"], "n": [1]})
    shared(here).append(NAME, rows, writer_id="me", batch_id="1")
    assert sweep(database, here.warehouse, 0.0)["failed"] == []
    [written] = (name for name in lake.objects if name.endswith(".parquet"))
    assert "/_weir_attempt=2/" in written
    assert lake.objects.keys() == {"weir/_weir_installation", "weir/other", written}
    assert lake.uploads == {}


def test_a_wrong_key_and_a_missing_bucket_are_said_before_anything_is_written(
    database: Database, here: Settings, lake: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"k": ["a"]})
    other = replace(here, warehouse="s3://pond/weir")
    with raises("warehouse_not_writable s3://pond/weir 'pond'"):
        shared(other).append(NAME, rows, writer_id="me", batch_id="1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    with raises("warehouse_unreadable s3a://lake/weir 'lake' AWS ACCESS_DENIED"):
        shared(here).append(NAME, rows, writer_id="me", batch_id="2")
    assert lake.objects == {}
