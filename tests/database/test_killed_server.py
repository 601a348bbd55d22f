"""What operations do while a server is killed and away, and what is there afterwards."""

import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.database.test_connection import note, noted
from tests.watching import count_statements
from tests.world.servers import weir_server
from tests.world.streams import Lane, staged, unique, while_held
from weir.controller.commit import commit
from weir.controller.locks import lock_streams
from weir.controller.transactions import begin
from weir.database.connection import Database
from weir.errors import Unavailable
from weir.local.embedded_postgres import EmbeddedPostgres

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedPostgres]:
    """A server of these tests' own: it is killed again and again."""
    with weir_server(keeps=True) as server:
        yield server


@pytest.fixture
def killable(server: EmbeddedPostgres) -> Iterator[Database]:
    """Its database; whatever a test did, the server runs again afterwards."""
    database = Database(server.dsn("weir", "weir_app"), patience=60.0, connect_patience=60.0)
    yield database
    database.dispose()
    server.start()


def test_a_transaction_in_whose_middle_the_server_dies_is_done_when_it_is_back(
    server: EmbeddedPostgres, killable: Database
) -> None:
    request = unique("request")
    calls: list[int] = []

    def work(connection: Connection) -> str:
        note(connection, request)
        calls.append(len(calls))
        if len(calls) == 1:
            server.kill()
            threading.Timer(1.0, server.start).start()
        return "done"

    assert killable.transaction(work) == "done"
    assert len(calls) >= 2
    assert noted(killable, request) == 1


def test_the_first_connection_is_waited_for_less_long(server: EmbeddedPostgres) -> None:
    elsewhere = re.sub(r"port=\d+", "port=1", server.dsn("weir", "weir_app"))
    database = Database(elsewhere, patience=600.0, connect_patience=0.3)
    with pytest.raises(Unavailable) as caught:
        noted(database, "none")
    assert str(caught.value).count("\n") == 0
    assert caught.value.retryable


def test_an_append_that_was_told_of_is_there_after_the_server_is_killed(
    killable: Database, server: EmbeddedPostgres
) -> None:
    """Also when others waited for the stream, and its lock was let go of before the disk had it."""
    lane = Lane.made(killable)
    told: list[int] = []
    dead = threading.Event()
    counted = count_statements(killable)

    def append() -> None:
        while not dead.is_set():
            done = commit(killable, staged(lane.opened(), {"0.0": 1}))
            if not dead.is_set():
                told.append(done[0].transaction_number)

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(append) for _ in range(4)]
        while len(told) < 40:
            time.sleep(0.01)
        dead.set()
        server.kill()
        before = list(told)
        server.start()
        for writer in writers:
            writer.result(60)
    kept = lane.rows("SELECT transaction_number FROM transaction WHERE state = 'committed'")
    assert set(before) <= {number for (number,) in kept}
    assert any("pg_logical_emit_message" in statement for statement in counted)


@pytest.fixture
def slow_to_write(server: EmbeddedPostgres) -> Iterator[None]:
    """The server leaves what nobody waits for in its memory, where a crash loses it."""
    server.psql("ALTER SYSTEM SET wal_writer_delay = '10s'; SELECT pg_reload_conf();")
    yield
    server.start()
    server.psql("ALTER SYSTEM RESET wal_writer_delay; SELECT pg_reload_conf();")


@pytest.mark.parametrize("guard", [None, lambda _: None], ids=["alone", "guarded"])
def test_an_attempt_that_may_write_is_there_after_the_server_is_killed(
    killable: Database, server: EmbeddedPostgres, slow_to_write: None, guard: Any
) -> None:
    """Else the next append would be given its number, and find its files."""
    lane = Lane.made(killable)

    def opened() -> Any:
        attempt = begin(
            killable, lane.name, writer_id="w", batch_id="b", fingerprint="", lease=600.0,
            source="test", guard=guard,
        )  # fmt: skip
        server.kill()
        return attempt

    _, attempt = while_held(killable, lambda c: lock_streams(c, ids=[lane.stream_id]), opened)
    server.start()
    kept = lane.rows("SELECT transaction_number FROM transaction WHERE stream_id = :s")
    assert [number for (number,) in kept] == [attempt.transaction_number]
