"""Compare the files of the warehouse with the ledger: each is there, of its size, with its rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection, text

from weir.audit.sentences import CounterExample

_THREADS = 16  # that wait for the ends of files
_AT_ONCE = 5_000  # files
_MOST = 100  # counter-examples
_EVERY = text(
    """SELECT s.stream_name AS stream, f.path, f.bytes, f.events - f.erased AS events
        FROM data_file f
    JOIN stream s USING (stream_id) ORDER BY f.path"""
)


def looking_at(
    system: fs.FileSystem, root: str, say: Callable[[str], None] = lambda _: None
) -> Callable[[Connection], list[CounterExample]]:
    """Return what looks at all files of a warehouse that the ledger names. `say`: is told how many
    it has looked at, now and then."""

    def look(connection: Connection) -> list[CounterExample]:
        rows = connection.execution_options(stream_results=True).execute(_EVERY)
        found: list[CounterExample] = []
        looked = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for some in rows.partitions(_AT_ONCE):
                for wrong in pool.map(lambda row: _wrong(system, root, row), some):
                    found += [CounterExample.of(wrong)] if wrong is not None else []
                if len(found) >= _MOST:
                    return found[:_MOST]
                looked += len(some)
                if len(some) == _AT_ONCE:
                    say(f"{looked:,} files looked at")
        return found

    return look


def _wrong(system: fs.FileSystem, root: str, row: Any) -> Any:
    """Return what is wrong with a file, as a row of a statement would say it."""

    def is_(kind: str, a: int = 0, b: int = 0) -> Any:
        return SimpleNamespace(
            kind=kind, stream=row.stream, reader_group=None, segment=None, a=a, b=b, name=row.path
        )

    info = system.get_file_info(f"{root}/{row.path}")
    if info.type != fs.FileType.File:
        return is_("file_absent")
    if info.size != row.bytes:
        return is_("file_size", info.size, row.bytes)
    try:
        rows = pq.read_metadata(f"{root}/{row.path}", filesystem=system).num_rows
    except (pa.ArrowInvalid, OSError):
        rows = 0
    return None if rows == row.events else is_("file_rows", rows, row.events)
