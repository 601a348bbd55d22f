"""Look at data files with pyarrow: whether they are there, their footers, and their contents."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from weir.annex.verification.recorded import Columns, Commit, File, Recorded
from weir.errors import InvalidInput
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.row_hash import U64, hashes_of_longs, hashes_of_texts, row_hashes
from weir.kernel.transforms import Computation
from weir.model.digest import hash_of
from weir.model.key_space import STEPS
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER, SEQ, stored_name
from weir.model.transforms import value_of
from weir.warehouse.footer import ranks_of, read_footer

_ROWS = 1 << 16  # read at once
# What pyarrow raises for bytes that are no Parquet file, or a damaged one.
DAMAGED = (OSError, pa.ArrowException, ValueError, OverflowError, MemoryError)
_MISSING = ("missing", "it is not there")


@dataclass
class Seen:
    """What was seen in a file: what is wrong (kind and words), and, if it was read, the sums of the
    hashes of its rows by their clocks, and the hash of its bytes; `keys`: whether the segment of
    each row was checked."""

    wrong: list[tuple[str, str]] = field(default_factory=list)
    sums: dict[int, int] | None = None
    keys: bool = False
    file_hash: int | None = None


class Reader(NamedTuple):
    """What is needed to look at the files of a stream."""

    system: fs.FileSystem
    base: str
    columns: Columns


def look_at(reader: Reader, file: File, commits: Sequence[Commit]) -> Seen:
    """Look at a file, and read it. `commits`: those of its events."""
    seen = Seen()
    try:
        with reader.system.open_input_file(f"{reader.base}/{file.path}") as source:
            if (size := source.size()) == file.bytes:
                # All of it once, so that what is read is what has the hash.
                whole = source.read_buffer(size)
                seen.file_hash, source = hash_of(whole), pa.BufferReader(whole)
            footer, seen.wrong = _footer(source, size, file.recorded)
            if footer is not None and not seen.wrong:
                try:
                    _read(reader, file, commits, pq.ParquetFile(
                        source, metadata=footer, page_checksum_verification=True,
                        coerce_int96_timestamp_unit="us"), seen)  # fmt: skip
                except DAMAGED as error:
                    seen.sums = None
                    seen.wrong.append(
                        ("unreadable", f"a page of it can't be read ({_said(error)})")
                    )
                if not seen.wrong and file.file_hash not in (None, seen.file_hash):
                    seen.wrong.append(("bytes", "its bytes are not those that were written"))
    except FileNotFoundError:
        seen.wrong.append(_MISSING)
    return seen


def look_at_footer(system: fs.FileSystem, base: str, recorded: Recorded) -> list[tuple[str, str]]:
    """Return what is wrong with the size and the footer of a file: kinds and words. Mostly reads
    once. Raises OSError if the file can't be opened."""
    try:
        with system.open_input_file(f"{base}/{recorded.path}") as source:
            return _footer(source, source.size(), recorded)[1]
    except FileNotFoundError:
        return [_MISSING]


def _said(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _footer(
    source: pa.NativeFile, size: int, recorded: Recorded
) -> tuple[pq.FileMetaData | None, list[tuple[str, str]]]:
    """Return the footer of a file, if it has one, and what is wrong with it or with the size."""
    if size != recorded.bytes:
        return None, [("size", f"it has {size:,} of {recorded.bytes:,} bytes")]
    try:
        footer, end_hash = read_footer(source, size)
        ranks, known = ranks_of(footer), recorded.ranks
    except DAMAGED as error:
        return None, [("unreadable", f"its footer can't be read ({_said(error)})")]
    wrong = []
    if recorded.end_hash not in (None, end_hash):
        wrong.append(("end", "its end, with the footer, is another one than was written"))
    if footer.num_rows != recorded.rows:
        wrong.append(("rows", f"it has {footer.num_rows:,} rows instead of {recorded.rows:,}"))
    elif ranks and known and not known[0] <= ranks[0] <= ranks[1] <= known[1]:
        wrong.append(("rows", f"it has ranks {ranks[0]:,} to {ranks[1]:,}, which is not within "
                      f"{known[0]:,} to {known[1]:,}"))  # fmt: skip
    return footer, wrong


def hashed_columns(names: Iterable[str], columns: Columns) -> list[str]:
    """Return which columns of a file are in the hashes of its rows."""
    added = {SEQ, CLOCK, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER, TIME}
    return sorted({*names} - added - columns.unhashed)


def _read(
    reader: Reader, file: File, commits: Sequence[Commit], parquet: pq.ParquetFile, seen: Seen
) -> None:
    """Read a file, and add to `seen` the sums of the hashes of its rows, and what is wrong."""
    schema = parquet.schema_arrow  # what was hashed has the types of the file
    names = hashed_columns(schema.names, reader.columns)
    several = [CLOCK] if file.compacted else []
    key = _key_of(reader.columns, schema)
    sums: dict[int, int] = defaultdict(int)
    order = _Order(file)
    misplaced = 0
    # A file before it may have events of several commits, of which this one continues the last.
    alone = next((commit.clock for commit in commits if commit.end > file.start_offset), 0)
    keyed = [] if key is None else [one for one in key.stored.values() if one not in names]
    for found in parquet.iter_batches(_ROWS, columns=[*names, *keyed, SEQ, *several]):
        known = {} if key is None else key.texts(found, names)
        hashes = row_hashes(found, names, known)
        ranks = found[SEQ].to_numpy()
        if several:
            clocks = found[CLOCK].to_numpy()
            begins = np.flatnonzero(np.diff(clocks, prepend=clocks[0] - 1))
            for clock, total in zip(clocks[begins], np.add.reduceat(hashes, begins), strict=True):
                sums[int(clock)] += int(total)
            order.add(ranks, clocks)
        else:
            sums[alone] += int(hashes.sum())
            order.add(ranks, None)
        if key is not None:
            misplaced += _misplaced(key.steps(found, known), file)
    seen.sums, seen.keys = dict(sums), key is not None
    seen.wrong += order.wrong
    if misplaced:
        seen.wrong.append(("segment", f"{misplaced:,} of its rows have keys of another segment"))


class _Order:
    """Whether the rows of a file are in the order of clock and rank, within what is recorded."""

    def __init__(self, file: File) -> None:
        self._file = file
        self._last: tuple[int, int] | None = None
        self.wrong: list[tuple[str, str]] = []

    def add(self, ranks: npt.NDArray[np.int64], clocks: npt.NDArray[np.int64] | None) -> None:
        if self.wrong or len(ranks) == 0:
            return
        clocks = np.zeros(len(ranks), np.int64) if clocks is None else clocks
        later = np.diff(clocks)
        ordered = bool(((later > 0) | (later == 0) & (np.diff(ranks) > 0)).all())
        first = int(clocks[0]), int(ranks[0])
        if not ordered or (self._last is not None and first <= self._last):
            self.wrong.append(("order", "its rows are not in the order of their commits and ranks"))
        elif int(ranks.min()) < self._file.first_seq or int(ranks.max()) > self._file.last_seq:
            self.wrong.append(("order", "its ranks are not those that were recorded"))
        self._last = int(clocks[-1]), int(ranks[-1])


@dataclass(frozen=True)
class _Key:
    """The routing keys of rows: what computes them of the columns of a file, which are called
    otherwise there."""

    computation: Computation
    stored: dict[str, str]

    def texts(self, batch: pa.RecordBatch, hashed: Sequence[str]) -> dict[str, U64]:
        """Return the hashes of keys that are texts: they are those of a column of the row, too."""
        plain = self.computation.transform.plain
        name = self.stored.get(plain or "")
        if name is None or name not in hashed or not pa.types.is_string(batch[name].type):
            return {}
        return {name: hashes_of_texts(batch[name])}

    def steps(self, batch: pa.RecordBatch, known: dict[str, U64]) -> U64:
        """Return the routing positions of rows in steps (semantics 1.6)."""
        if known:
            [(name, hashes)] = known.items()
            keys = batch[name]
        else:
            given = {name: batch[stored] for name, stored in self.stored.items()}
            if not given:  # so no row of the file has a key
                return hashes_of_longs(batch[SEQ]) >> np.uint64(11)
            keys = self.computation.texts(pa.table(given)).values.combine_chunks()
            hashes = hashes_of_texts(keys)
        if keys.null_count:  # rows without a key are spread
            there = keys.is_valid().to_numpy(zero_copy_only=False)
            hashes = np.where(there, hashes, hashes_of_longs(batch[SEQ]))
        return hashes >> np.uint64(11)


def _key_of(columns: Columns, schema: pa.Schema) -> _Key | None:
    """Return the routing keys of rows; None if Weir does not compute them any more."""
    stored = {one["name"].lower(): stored_name(one) for one in columns.fields}
    try:
        transform = value_of(columns.routing_key, "routing key")
        names = {used: stored.get(used.lower()) for used in transform.columns}
        there = {used: name for used, name in names.items() if name and name in schema.names}
        fields = [
            pa.field(used, schema.field(there[used]).type if used in there else pa.null())
            for used in names
        ]
        found = Computation.of(transform, pa.schema(fields), "routing key")
        found.texts(found.schema.empty_table())
    except InvalidInput:
        return None
    return _Key(found, there)


def _misplaced(steps: U64, file: File) -> int:
    low, high = (np.uint64(math.ceil(end * STEPS)) for end in (file.key_low, file.key_high))
    return int(((steps < low) | (steps >= high)).sum())
