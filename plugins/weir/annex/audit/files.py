"""Compare the files of the warehouse with the ledger: each is there, of its size, with its rows,
and without a row where holes are declared, and nowhere else."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection, text

from weir.annex.audit.sentences import CounterExample

_THREADS = 16  # that wait for the ends of files
_AT_ONCE = 5_000  # files
_MOST = 100  # counter-examples
_EVERY = text(
    """SELECT s.stream_name AS stream, f.path, f.bytes, f.events - f.erased AS events,
        f.segment_id, f.start_offset, f.events AS offsets, h.firsts, h.pasts
    FROM data_file f JOIN stream s USING (stream_id)
    CROSS JOIN LATERAL (
        SELECT array_agg(o.chunk * 65536 + lower(m)) AS firsts,
               array_agg(o.chunk * 65536 + upper(m)) AS pasts
        FROM hole o CROSS JOIN LATERAL unnest(o.offsets * int4multirange(int4range(
            greatest(f.start_offset - o.chunk * 65536, 0)::integer,
            least(f.start_offset + f.events - o.chunk * 65536, 65536)::integer))) m
        WHERE o.stream_id = f.stream_id AND o.segment_id = f.segment_id AND o.chunk BETWEEN
            f.start_offset / 65536 AND (f.start_offset + f.events - 1) / 65536) h
    ORDER BY f.path"""
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
    if rows != row.events:
        return is_("file_rows", rows, row.events)
    if row.events == row.offsets and not row.firsts:
        return None
    at = _hole_elsewhere(system, f"{root}/{row.path}", row)
    return None if at is None else is_("hole_elsewhere", at)


def _hole_elsewhere(system: fs.FileSystem, path: str, row: Any) -> int | None:
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
