"""Processes that append 1,000 rows at once, each on its own, to Weir or to DuckLake: a file that is
there already, or an Arrow table."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib import resources
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from typing import Any, NamedTuple
from uuid import uuid4

import duckdb
import pyarrow as pa
from pyarrow import fs, parquet

from weir.controller.commit import commit
from weir.controller.transactions import begin
from weir.database.connection import Database
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.names import stream_name
from weir.model.schema import new_field
from weir.programs.opening import open
from weir.settings import Settings

ROWS = 1000
FIELDS = [
    new_field("key", "string"),
    new_field("value", "long"),
]
COLUMNS = "key VARCHAR, value BIGINT"
# DuckLake's retries at their best, of those tried: with shorter waits, or waits that do not grow,
# its writers disturb each other more; and so many that none gives up.
RETRIES = {
    "ducklake_max_retry_count": 1000,
    "ducklake_retry_wait_ms": 100,
    "ducklake_retry_backoff": 1.5,
}

# An append to a stream or table, of the file that it is given, or of an Arrow table; a writer calls
# it repeatedly.
Append = Callable[[str, str], object]
_barrier: Barrier


class Appended(NamedTuple):
    """What all writers together did."""

    seconds: float
    commits: int
    failures: list[str]


class Lake(NamedTuple):
    """Where a DuckLake is: the Postgres database of its tables, and the folder of its files."""

    dsn: str
    folder: str


class _Done(NamedTuple):
    began: float
    ended: float
    failures: list[str]


class Writers:
    """So many processes; each keeps its connections from one call to the next."""

    def __init__(self, count: int, folder: Path) -> None:
        self._count = count
        self._folder = folder
        parquet.write_table(rows(), folder / "rows.parquet")
        context = get_context("spawn")
        barrier = context.Barrier(count)
        self._pool = ProcessPoolExecutor(count, context, _meet_at, (barrier,))

    def __enter__(self) -> "Writers":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def append(
        self, connect: Callable[[Any], Append], place: Any, to: Sequence[str], each: int
    ) -> Appended:
        """Let each process make `each` appends, to one stream or table after the other, and return
        what all did. All processes begin together."""
        tasks = [
            self._pool.submit(
                _append,
                connect,
                place,
                [(to[(i + j) % len(to)], self._file()) for j in range(each)],
            )
            for i in range(self._count)
        ]
        done = [task.result() for task in tasks]
        failures = [failure for one in done for failure in one.failures]
        seconds = max(one.ended for one in done) - min(one.began for one in done)
        return Appended(seconds, self._count * each - len(failures), failures)

    def _file(self) -> str:
        """Return the path of a new file: the same bytes under another name."""
        path = self._folder / f"{uuid4().hex}.parquet"
        os.symlink(self._folder / "rows.parquet", path)
        return str(path)


def rows() -> pa.Table:
    """Return the rows that are appended."""
    return pa.table({"key": [f"key-{i}" for i in range(ROWS)], "value": list(range(ROWS))})


def _meet_at(barrier: Barrier) -> None:
    global _barrier
    _barrier = barrier


def _append(connect: Callable[[Any], Append], place: Any, work: Sequence[tuple[str, str]]) -> _Done:
    append = connect(place)
    failures = []
    _barrier.wait(timeout=120)
    began = time.monotonic()
    for to, path in work:
        try:
            append(to, path)
        except Exception as error:  # the caller says what is to become of it
            failures.append(f"{type(error).__name__}: {error}")
    return _Done(began, time.monotonic(), failures)


@cache
def weir(dsn: str) -> Append:
    """Return an append to a stream of Weir: it begins, reads the file's footer and commits."""
    database = Database(dsn, patience=60.0, connect_patience=10.0)
    files = fs.LocalFileSystem()

    def append(stream: str, path: str) -> None:
        attempt = begin(
            database, stream_name(stream), writer_id="bench", batch_id=path, fingerprint="",
            lease=600.0, source="bench",
        )  # fmt: skip
        assert isinstance(attempt, Attempt)
        with files.open_input_file(path) as source:  # as the jobs do
            rows = parquet.read_metadata(source).num_rows
        segment = attempt.segments[0].segment_id
        file = StagedFile(segment, path, rows, os.path.getsize(path), 0, rows - 1)
        commit(database, Staged(attempt, (file,), FIELDS))

    return append


@cache
def ducklake(dsn: str) -> Append:
    """Return an append to a table of DuckLake, which registers the file."""
    connection = lake(dsn)

    def append(table: str, path: str) -> None:
        connection.execute(f"CALL ducklake_add_data_files('lake', '{table}', '{path}')")

    return append


@cache
def weir_rows(settings: Settings) -> Append:
    """Return an append of an Arrow table to a stream of Weir, as a program does it."""
    store, table = open(settings=settings), rows()
    return lambda stream, _: store.append(stream, table)


@cache
def ducklake_rows(where: Lake) -> Append:
    """Return an append of an Arrow table to a table of DuckLake, which writes the file."""
    connection = lake(*where)
    connection.register("given", rows())
    return lambda table, _: connection.execute(f"INSERT INTO lake.{table} FROM given")


def with_ducklake() -> duckdb.DuckDBPyConnection:
    """Return DuckDB with what it needs for a DuckLake in Postgres."""
    connection = duckdb.connect()
    for name in ("ducklake", "postgres_scanner"):
        extension = (
            resources.files(f"duckdb_extension_{name}") / f"extensions/v{duckdb.__version__}"
        )
        connection.execute(f"LOAD '{extension / name}.duckdb_extension'")
    connection.execute("SET enable_progress_bar = false")
    return connection


def lake(dsn: str, folder: str = "/nowhere") -> duckdb.DuckDBPyConnection:
    """Return DuckDB with the DuckLake whose tables are in this Postgres database. `folder`: where
    it writes files."""
    connection = with_ducklake()
    for name, value in RETRIES.items():
        connection.execute(f"SET {name} = {value}")
    connection.execute(
        f"""ATTACH 'ducklake:postgres:{dsn.replace("'", "''")}' AS lake
        (DATA_PATH '{folder}', DATA_INLINING_ROW_LIMIT 0)"""
    )
    return connection
