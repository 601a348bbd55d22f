"""Consumers of several tasks under a real Airflow: they share the work, a task that is killed is
replaced without waiting for its lease, and an adjunct store is built beside them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.acceptance.conftest import settings_of
from tests.committed_folders import committed_folders
from tests.crash.jobs import wait_for
from tests.world.streams import rows
from weir.adjunct.lookup import look_up
from weir.adjunct.stores import define_store
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.local.installation import Installation
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.programs.opening import shared
from weir.reader_groups.groups.lifecycle import create_reader_group

pytestmark = pytest.mark.timeout(600)


class Shared:
    """A stream of eight segments, a group that reads it, and what its consumers made of it."""

    def __init__(self, installation: Installation, name: str) -> None:
        self.installation = installation
        self.name = name
        self.output = f"{name}-{{{{run_id}}}}"  # what a form says is no template
        self.settings = settings_of(installation)
        self.database = Database.of(self.settings)
        self.events = 0
        stream = stream_name(f"test/{name}")
        create_stream(self.database, stream, segments=8, routing_key="key", request_id=name)
        create_reader_group(self.database, name, [stream], request_id=name)

        for _ in range(10):  # batches end with files
            numbers = range(self.events, self.events + 2_000)
            table = pa.table({"key": [f"key {n % 997}" for n in numbers], "n": list(numbers)})
            self.events += len(numbers)
            shared(self.settings).append(
                str(stream), table, writer_id="test", batch_id=str(self.events),
            )  # fmt: skip

    def trigger(self, readers: int, function: str = "slowly:events", **more: Any) -> str:
        """Start a run with so many readers; returns its id."""
        return self.installation.airflow.api().trigger(
            "weir_process",
            {"reader_group": self.name, "function": function, "readers": readers,
             "outputs": [f"parquet:{self.output}"], **more},
        )  # fmt: skip

    def wait(self, run_id: str) -> str:
        return self.installation.airflow.api().wait("weir_process", run_id, 300)

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        """The rows of a query that names the group `:g`."""
        return rows(self.database, sql, g=self.name, **parameters)

    def batches(self) -> list[Any]:
        return self.rows("SELECT * FROM batches WHERE reader_group = :g ORDER BY batch_id")

    def has_committed(self, count: int) -> bool:
        return len([b for b in self.batches() if b.state == "committed"]) >= count

    def check_each_event_once(self) -> None:
        root = Path(self.settings.output_roots[0])
        folders = committed_folders(self.database, self.name, self.output)
        found = [n for f in folders for n in pq.read_table(root / f)["n"].to_pylist()]
        assert sorted(found) == list(range(self.events))


def tree_of(run_id: str, map_index: int) -> list[psutil.Process]:
    """The process that runs a mapped task, and all its children: the JVM, the driver."""
    ours = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            said = " ".join(process.cmdline())
            if run_id in said and f'"map_index": {map_index},' in said:
                ours.append(process)
    first = next(process for process in ours if process.parent() not in ours)
    runner = first.parent()
    return [runner, *runner.children(recursive=True)]


@contextmanager
def frozen(found: list[psutil.Process]) -> Iterator[None]:
    for process in found:
        with suppress(psutil.Error):
            process.suspend()
    try:
        yield
    finally:
        for process in found:
            with suppress(psutil.Error):
                process.resume()


def kill_with_an_open_batch(shared: Shared, run_id: str, map_index: int) -> Any:
    """SIGKILL all of a mapped task while it has a batch open; returns the batch."""
    sql = "SELECT * FROM open_batches WHERE reader_group = :g AND reader_id = :reader"
    reader = f"weir_process/{run_id}/process/{map_index}"
    while True:
        wait_for("a batch to be opened", lambda: shared.rows(sql, reader=reader))
        tree = tree_of(run_id, map_index)
        with frozen(tree):
            if open_now := shared.rows(sql, reader=reader):
                for process in reversed(tree):  # the driver first: its parent can't tell
                    with suppress(psutil.Error):
                        process.kill()
                return open_now[0]


@pytest.mark.release
def test_three_readers_share_a_stream_and_take_over_from_one_that_is_killed(
    installation: Installation,
) -> None:
    shared = Shared(installation, "killed")
    run_id = shared.trigger(readers=3)
    wait_for("the first batches", lambda: [b for b in shared.batches() if b.state == "committed"])
    killed = kill_with_an_open_batch(shared, run_id, 1)
    assert shared.wait(run_id) == "success"
    batches = {batch.batch_id: batch for batch in shared.batches()}
    taken = batches[killed.batch_id]
    assert {batch.state for batch in batches.values()} == {"committed"}
    assert (taken.attempt, taken.events) == (2, killed.events), "taken over whole"
    assert taken.reader_id != killed.reader_id, "not by its next try, and long before its lease"
    readers = {batch.reader_id for batch in batches.values()} | {killed.reader_id}
    assert len(readers) == 3, "each had a part"
    shared.check_each_event_once()


@pytest.mark.release
def test_two_consumers_and_a_builder_of_their_store_run_at_once(installation: Installation) -> None:
    consumers = [Shared(installation, "priced-one"), Shared(installation, "priced-two")]
    database, settings, store = consumers[0].database, consumers[0].settings, "test/prices"
    create_stream(database, stream_name(store), routing_key="item", segments=2, request_id=store)
    define_store(
        database, store, stream_name(store), AdjunctConfiguration(bootstrap="tail"),
        AdjunctDefinition(), request_id=f"define {store}",
    )  # fmt: skip

    def set_price(price: int) -> None:
        table = pa.table({"item": ["it"], "price": [price]})
        shared(settings).append(store, table, writer_id="test", batch_id=str(price))

    api = installation.airflow.api()
    api.patch("/dags/weir_adjunct", {"is_paused": False})
    set_price(0)
    runs = [(one, one.trigger(1, function="slowly:priced", adjuncts=[store])) for one in consumers]
    builders = []
    for price in range(1, 5):
        for one in consumers:  # so that batches are opened before and after it is built
            wait_for("batches", partial(one.has_committed, price - 1))
        builders.append(api.trigger("weir_adjunct", {"adjunct_stores": [store]}))
        set_price(price)
    assert [one.wait(run_id) for one, run_id in runs] == ["success", "success"]
    assert [api.wait("weir_adjunct", run_id, 300) for run_id in builders] == ["success"] * 4
    seen = set()
    for one in consumers:
        one.check_each_event_once()
        batches = one.rows(
            """SELECT o.path, p.version FROM parquet_outputs o
            JOIN adjunct_pins p USING (reader_group, batch_id) WHERE reader_group = :g"""
        )
        assert batches
        for batch in batches:
            held = look_up(database, settings.warehouse, store, "it", batch.version)
            assert held is not None
            seen.add(held["price"])
            assert set(pq.read_table(batch.path)["now_price"].to_pylist()) == {held["price"]}
    assert len(seen) > 1, "versions were built meanwhile"
    versions = rows(
        database,
        "SELECT version, state, base FROM adjunct_versions WHERE adjunct_store = :n ORDER BY 1",
        n=store,
    )
    assert [(v.version, v.state, v.base or 0) for v in versions] == [
        (i + 1, "published", i) for i in range(len(versions))
    ], "one after the other"
