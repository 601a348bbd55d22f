"""Compare the files of the warehouse with the ledger: each is there, of its size, with its rows,
and without a row where holes are declared, and nowhere else."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection

from weir.annex.audit.sentences import Found
from weir.queries.annex.audit import files as sql

_THREADS = 16  # that wait for the ends of files
_AT_ONCE = 5_000  # files
_MOST = 100  # counter-examples


def looking_at(
    system: fs.FileSystem, root: str, say: Callable[[str], None] = lambda _: None
) -> Callable[[Connection], list[Found]]:
    """Return what looks at all files of a warehouse that the ledger names. `say`: is told how many
    it has looked at, now and then."""

    def look(connection: Connection) -> list[Found]:
        rows = connection.execution_options(stream_results=True).execute(sql.EVERY)
        found: list[Found] = []
        looked = 0
        with ThreadPoolExecutor(_THREADS) as pool:
            for some in rows.partitions(_AT_ONCE):
                files = map(sql.LedgerFile._make, some)
                found += filter(None, pool.map(lambda one: _wrong(system, root, one), files))
                if len(found) >= _MOST:
                    return found[:_MOST]
                looked += len(some)
                if len(some) == _AT_ONCE:
                    say(f"{looked:,} files looked at")
        return found

    return look


def _wrong(system: fs.FileSystem, root: str, row: sql.LedgerFile) -> Found | None:
    """Return what is wrong with a file."""

    def is_(kind: str, a: int = 0, b: int = 0) -> Found:
        return Found(kind, row.stream, a=a, b=b, name=row.path)

    info = system.get_file_info(f"{root}/{row.path}")
    if info.type != fs.FileType.File:
        return is_("file_absent")
    if info.size != row.bytes:
        return is_("file_size", info.size, row.bytes)
    try:
        rows = pq.read_metadata(f"{root}/{row.path}", filesystem=system).num_rows
    except (pa.ArrowInvalid, OSError):
        rows = 0
    if rows != row.events:
        return is_("file_rows", rows, row.events)
    if row.events == row.offsets and not row.firsts:
        return None
    at = _hole_elsewhere(system, f"{root}/{row.path}", row)
    return None if at is None else is_("hole_elsewhere", at)


def _hole_elsewhere(system: fs.FileSystem, path: str, row: sql.LedgerFile) -> int | None:
    """Return the first offset at which a file and the holes that are declared differ."""
    every = set(range(row.start_offset, row.start_offset + row.offsets))
    pairs = zip(row.firsts or (), row.pasts or (), strict=True)
    holes = [offset for first, past in pairs for offset in range(first, past)]
    try:
        found = pq.read_table(path, filesystem=system, columns=["_weir_offset"], partitioning=None)
        has = found.column_names and found[0].to_pylist()
    except (pa.ArrowInvalid, OSError):
        has = []
    there = set(has) if has else every if row.events == row.offsets else set()
    wrong = (every - there) ^ set(holes) | (there - every)
    if has and has != sorted(there):
        wrong.add(has[0])
    if len(holes) != len(set(holes)):
        wrong.add(holes[0])
    return min(wrong, default=None)
