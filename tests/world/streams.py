"""Streams of invented files: appends as the controller sees them, without Spark, without bytes."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from threading import Barrier, Event
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.conftest import make_database
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.controller.transactions import Committed, InputFile, begin
from weir.database.connection import Database
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import StreamName, stream_name
from weir.model.schema import new_field
from weir.model.segment import parse_segment_name, segment_name
from weir.retention.manual_truncation import truncate

FIELDS = [new_field("key", "string")]
BYTES_PER_EVENT = 10
_numbers = count(1)


def unique(prefix: str) -> str:
    """Return a name that no other test of this run uses."""
    return f"{prefix}-{next(_numbers)}"


@contextmanager
def database_for_many(server: EmbeddedPostgres, name: str) -> Iterator[Database]:
    """Yield a fresh copy of the migrated database, for the tests of a folder."""
    make_database(server, name)
    opened = Database(server.dsn(name, "weir_app"), patience=60.0, connect_patience=60.0)
    yield opened
    opened.dispose()


@pytest.fixture(scope="module")
def database_of_file(
    postgres_server: EmbeddedPostgres, request: pytest.FixtureRequest
) -> Iterator[Database]:
    """Yield a database for all tests of a file that says `database = database_of_file`."""
    with database_for_many(postgres_server, request.module.__name__.replace(".", "_")) as opened:
        yield opened


def shared_by(folder: str) -> Any:
    """Return the fixture `shared_database` of a folder: a migrated database, as a job sees it, for
    all tests that only look at streams and groups of their own."""

    @pytest.fixture(scope="package")
    def shared_database(postgres_server: EmbeddedPostgres) -> Iterator[Database]:
        with database_for_many(postgres_server, folder) as database:
            yield database

    return shared_database


def rows(database: Database, sql: str, **parameters: Any) -> list[Any]:
    """Return the rows of a query in a transaction of its own."""
    return database.transaction(lambda c: list(c.execute(text(sql), parameters)))


def run(database: Database, sql: str, **parameters: Any) -> int:
    """Run a statement that changes something, and return how many rows it touched."""
    return database.transaction(lambda c: int(c.execute(text(sql), parameters).rowcount))


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """Run things in threads that start together. Return the result of each, or what it raised."""
    barrier = Barrier(len(works))

    def begun(work: Callable[[], Any]) -> Any:
        barrier.wait(timeout=300)
        try:
            return work()
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(works)) as pool:
        return [one.result(timeout=300) for one in [pool.submit(begun, w) for w in works]]


@dataclass
class Lane:
    """One stream, and short ways to do to it what jobs do."""

    database: Database
    name: StreamName
    stream_id: int

    @classmethod
    def made(
        cls, database: Database, segments: int = 2, name: str | None = None, **options: Any
    ) -> "Lane":
        chosen = stream_name(name or f"test/{unique('stream')}")
        made = create_stream(
            database, chosen, routing_key="key", segments=segments, request_id=unique("create"),
            **options,
        )  # fmt: skip
        return cls(database, chosen, made["stream_id"])

    def begin(
        self, batch: str | None = None, *, writer: str = "writer", fingerprint: str = "print",
        lease: float = 600.0, inputs: Sequence[str] = (), allow_repeated_files: bool = False,
        source: str = "dag/run/task",
    ) -> Attempt | Committed:  # fmt: skip
        files = [InputFile(path, 1) for path in inputs]
        return begin(
            self.database, self.name, writer_id=writer, batch_id=batch or unique("batch"),
            fingerprint=fingerprint, lease=lease, source=source, inputs=files,
            allow_repeated_files=allow_repeated_files,
        )  # fmt: skip

    def opened(self, batch: str | None = None, **options: Any) -> Attempt:
        """Begin a transaction that is known not to be committed, and return its attempt."""
        attempt = self.begin(batch, **options)
        assert isinstance(attempt, Attempt)
        return attempt

    def commit(self, attempt: Attempt, written: Mapping[str, int | Sequence[int]]) -> Committed:
        [done] = commit(self.database, staged(attempt, written))
        return done

    def append(self, written: Mapping[str, int | Sequence[int]], **options: Any) -> Committed:
        """Append events and return their commit. `written`: per segment how many events, or how
        many in each of its files."""
        return self.commit(self.opened(**options), written)

    def scale(self, *seal: str, request_id: str | None = None, **how: Any) -> list[str]:
        """Scale the stream, and return the names of the new segments."""
        done = scale(
            self.database, self.name, seal=seal, request_id=request_id or unique("scale"), **how
        )
        return [str(name) for name, _, _ in done["created"]]

    def truncate(self, cut: str, request_id: str | None = None) -> Mapping[str, Any]:
        return truncate(self.database, self.name, cut, request_id=request_id or unique("truncate"))

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        """Return the rows of a query that names the stream `:s`."""
        return rows(self.database, sql, s=self.stream_id, **parameters)

    def value(self, sql: str, **parameters: Any) -> Any:
        [[value]] = self.rows(sql, **parameters)
        return value

    def active(self) -> list[str]:
        """Return the active segments in the order of their keys."""
        return [
            segment_name(row.segment_id)
            for row in self.rows(
                """SELECT segment_id FROM segment_tail JOIN segment USING (stream_id, segment_id)
                WHERE stream_id = :s ORDER BY key_low"""
            )
        ]

    def tail(self) -> dict[str, int]:
        return dict(self.value("SELECT tail_cut(:s)"))

    def head(self) -> dict[str, Any]:
        return dict(self.value("SELECT head FROM stream WHERE stream_id = :s"))

    def sizes(self) -> dict[str, int]:
        """Return the number of events of every segment there ever was."""
        return {
            segment_name(row.segment_id): row.events
            for row in self.rows(
                """SELECT g.segment_id, coalesce(t.tail_offset, g.events) AS events FROM segment g
                LEFT JOIN segment_tail t USING (stream_id, segment_id)
                WHERE stream_id = :s ORDER BY segment_id"""
            )
        }

    def files(self, segment: str | None = None) -> list[Any]:
        """Return what data_file says, by segment and offset."""
        found = self.rows(
            """SELECT segment_id, start_offset, events, path, transaction_number
            FROM data_file WHERE stream_id = :s ORDER BY segment_id, start_offset"""
        )
        return [r for r in found if segment in (None, segment_name(r.segment_id))]

    def order_in(self, segment: str) -> list[int]:
        """Return the transactions whose files a segment holds, by offset."""
        return [row.transaction_number for row in self.files(segment)]

    def epochs(self) -> list[Any]:
        return self.rows("SELECT * FROM epoch WHERE stream_id = :s ORDER BY epoch")


def staged(attempt: Attempt, written: Mapping[str, int | Sequence[int]]) -> Staged:
    """Return what an attempt would have written: per segment how many events, or those of each
    file."""
    files = []
    rank = 0
    for segment, sizes in written.items():
        segment_id = parse_segment_name(segment)
        for i, events in enumerate([sizes] if isinstance(sizes, int) else sizes):
            path = f"{attempt.folder}_weir_segment={segment_id}/_weir_task={i}/part.parquet"
            files.append(
                StagedFile(
                    segment_id, path, events, events * BYTES_PER_EVENT, rank, rank + events - 1
                )
            )
            rank += events
    return Staged(attempt, tuple(files), FIELDS)


def waiting_for_a_lock(database: Database) -> int:
    """Return how many sessions of this database wait for a lock."""
    [[waiting]] = rows(
        database,
        """SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'""",
    )
    return int(waiting)


def while_held(
    database: Database,
    hold: Callable[[Connection], Any],
    meanwhile: Callable[[], Any],
    then: Callable[[Connection], Any] | None = None,
    *,
    by: Database | None = None,
) -> tuple[Any, Any]:
    """Run `hold` in a transaction, `meanwhile` beside it, and return the results of both, or what
    they raised.

    The transaction is committed when `meanwhile` waits for its locks, and after `then`, if it is
    given; then the first result is that of `then`. `by`: who holds the locks, if not the same
    login.
    """
    held = Event()

    def holding(connection: Connection) -> Any:
        result = hold(connection)
        held.set()
        end = time.monotonic() + 300
        while not waiting_for_a_lock(database):
            assert time.monotonic() < end, "nothing waits for these locks"
            time.sleep(0.01)
        return then(connection) if then else result

    def begun() -> Any:
        assert held.wait(timeout=300)
        return meanwhile()

    first, second = at_once(partial((by or database).transaction, holding), begun)
    return first, second
