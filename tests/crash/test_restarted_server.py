"""Postgres is restarted, as an upgrade does it, under an opened installation and a reader: both go
on, or say in one sentence that it is away; nothing is lost, and nothing is there twice.
"""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

import weir
from tests.crash.jobs import execute, wait_for
from tests.raises import raises
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.settings import Settings

pytestmark = pytest.mark.server
OUTPUTS = ("stream:s/out", "table:public.results")


@pytest.fixture
def settings(server: EmbeddedPostgres, warehouse: Path, tmp_path: Path) -> Iterator[Settings]:
    owner = server.dsn("weir", "weir_owner")
    execute(
        owner,
        """CREATE TABLE public.results (n bigint PRIMARY KEY);
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    yield Settings(
        state=tmp_path, database=server.dsn(), warehouse=str(warehouse), reader_lease=5.0
    )
    server.start()  # whatever the test did
    execute(owner, "DROP TABLE public.results")


@pytest.fixture
def store(settings: Settings) -> Iterator[weir.StreamStore]:
    with weir.open(settings=settings) as store:
        for name in ("s/in", "s/out"):
            store.create_stream(name, "k", segments=2)
        store.create_reader_group("g", ["s/in"])
        yield store
        store.delete_reader_group("g")
        for name in ("s/in", "s/out"):
            store.seal_stream(name)
            store.delete_stream(name, unread_too=True)


def rows(numbers: range) -> list[dict[str, Any]]:
    return [{"k": f"key {n % 7}", "n": n} for n in numbers]


def commit(batch: Any) -> None:
    results = batch.events.select(["k", "n"])
    batch.commit({OUTPUTS[0]: results, OUTPUTS[1]: results.select(["n"])})


def check(store: weir.StreamStore, server: EmbeddedPostgres, total: int) -> None:
    """Check that each event is once in the stream and in both outputs."""
    assert sorted(store.read("s/in")["n"].to_pylist()) == list(range(total))
    assert sorted(store.read("s/out")["n"].to_pylist()) == list(range(total))
    found = execute(server.dsn("weir", "weir_owner"), "SELECT n FROM public.results ORDER BY n")
    assert [n for (n,) in found] == list(range(total))


def test_appends_and_a_reader_go_on_over_restarts(
    store: weir.StreamStore, server: EmbeddedPostgres
) -> None:
    appended: list[int] = []
    over = threading.Event()

    def append(writer: int) -> None:
        for one in range(60):
            first = (writer * 60 + one) * 10
            identity = {"writer_id": f"writer {writer}", "batch_id": str(one)}
            assert not store.append("s/in", rows(range(first, first + 10)), **identity).repeated
            appended.append(first)

    total = 1200

    def read() -> int:
        read = 0
        while not over.is_set() or read < total:
            with store.reader("g", batch_events=100) as reader:
                for batch in reader:
                    commit(batch)
                    read += batch.size
        return read

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(append, writer) for writer in range(2)]
        reader = pool.submit(read)
        try:
            for share in (20, 50, 80):
                wait_for("appends", lambda: len(appended) >= share or over.is_set())  # noqa: B023
                server.stop()
                server.start()
            for writer in writers:
                writer.result()
        except BaseException:
            total = 0
            raise
        finally:
            over.set()  # or the reader would go on for ever
        assert reader.result() == 1200
    check(store, server, 1200)


def test_while_it_is_away_each_says_so_and_afterwards_the_same_objects_go_on(
    store: weir.StreamStore, settings: Settings, server: EmbeddedPostgres
) -> None:
    database = Database(settings.database, patience=0.3, connect_patience=10.0)
    hasty = weir.StreamStore(settings, database, "hasty")
    hasty.append("s/in", rows(range(10)))
    first = {"writer_id": "w", "batch_id": "1"}
    away = raises("database_unavailable dbname=weir")
    with hasty.reader("g", batch_events=5) as reader:
        commit(next(reader))
        batch = next(reader)
        events = batch.events
        server.stop()
        with away:
            hasty.append("s/in", rows(range(10, 20)), **first)
        with away:
            hasty.tail("s/in", 1)
        with away:
            batch.commit({OUTPUTS[0]: events.select(["k", "n"])})
        server.start()
        assert not hasty.append("s/in", rows(range(10, 20)), **first).repeated
        commit(batch)
        for more in reader:
            commit(more)
    for more in store.reader("g"):
        commit(more)
    check(store, server, 20)


def test_rows_staged_for_a_table_that_postgres_lost_in_its_crash_are_written_again(
    store: weir.StreamStore, server: EmbeddedPostgres
) -> None:
    store.append("s/in", rows(range(50)))
    for crash in (True, False):
        with (
            raises("output_not_writable 0 of 50") if crash else nullcontext(),
            store.reader("g") as reader,
        ):
            batch = next(reader)
            batch.write(OUTPUTS[0], batch.events.select(["k", "n"]))
            batch.write(OUTPUTS[1], batch.events.select(["n"]))
            if crash:
                server.kill()
                server.start()
            batch.commit()
    check(store, server, 50)
