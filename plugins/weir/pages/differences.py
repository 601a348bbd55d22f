"""Compare the rows of two sets of Parquet files: which are in both, which in one of them only, and,
if a key says which belong together, which have changed.

Each row is known by its hash, so that rows take 24 bytes each, however long they are; only the rows
that are shown are read again. Numbers are compared by what they are, whatever their types; -0.0 is
0.0, and NaN is NaN.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from weir.errors import InvalidInput
from weir.kernel.comparisons import is_exact, is_number
from weir.kernel.row_hash import U64, row_hashes
from weir.kernel.values import rows_of
from weir.model.schema import SEQ

PLACE = ("_segment", "_offset")
Rows = NDArray[np.int64]
Spans = Mapping[int, Sequence[tuple[int, int]]]  # by segment: offsets from, to exclusive
AT_ONCE, _PIECE = 8192, 16 << 20  # rows and bytes of a piece, at most
_LEAVES = (
    pa.types.is_boolean, pa.types.is_date32, pa.types.is_string, pa.types.is_binary,
    pa.types.is_float32, pa.types.is_float64,
    lambda kind: pa.types.is_timestamp(kind) and kind.unit == "us",
    lambda kind: pa.types.is_signed_integer(kind),
)  # fmt: skip


class Source(Protocol):
    """Rows in parts. `types`: of the columns, by name; `sizes`: how many rows each part has."""

    @property
    def types(self) -> dict[str, pa.DataType]: ...

    @property
    def sizes(self) -> Sequence[int]: ...

    @property
    def bytes(self) -> int: ...

    def pieces(
        self, names: Sequence[str], part: int | None = None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Yield the rows of a part, or of all, in pieces: how many, and the columns of these names
        that there are."""


@dataclass(frozen=True)
class File:
    """A Parquet file, and the columns whose values its folders have for all rows. `opened`: what
    opens it, each time that it is read: others need files, too, and there are only so many."""

    opened: Callable[[], pa.NativeFile]
    folders: Mapping[str, pa.Scalar]

    @cached_property
    def _known(self) -> tuple[pa.Schema, pq.FileMetaData]:
        with self.opened() as source:
            file = pq.ParquetFile(source)
            return file.schema_arrow, file.metadata

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of its columns, by name."""
        own = {field.name: field.type for field in self._known[0]}
        return own | {name: value.type for name, value in self.folders.items()}

    @property
    def sizes(self) -> list[int]:
        """The rows of its row groups, which are its parts."""
        metadata = self._known[1]
        return [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]

    @property
    def bytes(self) -> int:
        """How many it takes without compression."""
        metadata = self._known[1]
        return sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))

    def pieces(
        self, names: Sequence[str], part: int | None = None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Yield the rows of a row group, or of all, as a `Source` does. Raises OSError if the file
        was replaced meanwhile."""
        there = self.types
        own = [one for one in names if one in there and one not in self.folders]
        known = {name: value for name, value in self.folders.items() if name in names}
        some = own or self._known[0].names[:1]  # a piece without columns has no rows
        groups = None if part is None else [part]
        size = max(1, min(AT_ONCE, _PIECE * sum(self.sizes) // max(self.bytes, 1)))
        with self.opened() as source:
            file = pq.ParquetFile(source)
            if file.metadata != self._known[1]:
                raise OSError("it was replaced")
            for batch in file.iter_batches(size, row_groups=groups, columns=some):
                rows = batch.num_rows
                columns = {name: batch.column(name) for name in own}
                yield rows, columns | {name: pa.repeat(one, rows) for name, one in known.items()}


class Column(NamedTuple):
    """A column, and its types in the old and in the new files; None where there is no such column.
    `kind`: as what its values are compared; None if they are not."""

    name: str
    old: pa.DataType | None
    new: pa.DataType | None
    kind: pa.DataType | None


class Row(NamedTuple):
    """A row that is not in both: what it was, and what it is; of a changed one both, and the
    columns that have changed."""

    old: dict[str, object] | None
    new: dict[str, object] | None
    changed: list[str]


class Compared(NamedTuple):
    """How many rows are in both, have changed, or are in one only; and the first of these."""

    columns: list[Column]
    same: int
    changed: int
    only_old: int
    only_new: int
    rows: list[Row]


class NoPlaces(Exception):  # nothing is wrong: they are compared in another way
    """A row has no place."""


class _Unlike(Exception):
    """A value of a column does not fit the type in which both are compared."""


class _Read(NamedTuple):
    """Rows of files by their hashes, those of their keys, and their numbers over all files."""

    hashes: U64
    keys: U64
    numbers: Rows

    def only(self, those: NDArray[np.bool_]) -> "_Read":
        return _Read(self.hashes[those], self.keys[those], self.numbers[those])


def columns_of(old: Sequence[Source], new: Sequence[Source]) -> list[Column]:
    """Return the columns of two sets of files: in the order of the new ones, then the others."""
    before, now = _types(old), _types(new)
    return [
        Column(
            name,
            before.get(name),
            now.get(name),
            _common(before[name], now[name]) if name in before and name in now else None,
        )
        for name in [*now, *(name for name in before if name not in now)]
    ]


def compare(
    old: Sequence[Source], new: Sequence[Source], columns: Sequence[Column], *,
    key: Sequence[str] = (), within: Spans | None = None, most: int = 25,
    until: float = float("inf"),
) -> Compared:  # fmt: skip
    """Compare the rows of two sets of files, as often as each is there.

    `columns`: of `columns_of`. `key`: rows of the same values in these have changed if they differ;
    without it, none has. `within`: only rows of events at these places; raises NoPlaces if one has
    none. `most`: rows of each kind to return. `until`: when to give up, by `time.monotonic`. Raises
    InvalidInput then, and if there is nothing to compare.
    """
    found = {one.name: one.kind for one in columns if one.kind is not None}
    if not found:
        raise InvalidInput(
            "column_unknown",
            "the old and the new output have no column that can be compared; choose other outputs.",
        )
    if lacking := [one for one in key if one not in found]:
        raise InvalidInput(
            "column_unknown",
            f"the old and the new output do not both have a column {lacking[0]!r} that can be "
            f"compared; they have {', '.join(list(found)[:20])}.",
        )
    try:
        before = _read(old, found, key, within, until)
        now = _read(new, found, key, within, until)
    except _Unlike as error:
        fewer = [one._replace(kind=None) if one.name == str(error) else one for one in columns]
        return compare(old, new, fewer, key=key, within=within, most=most, until=until)
    gone = before.only(~_matched(before.hashes, now.hashes))
    come = now.only(~_matched(now.hashes, before.hashes))
    same = len(before.hashes) - len(gone.hashes)
    pairs = np.zeros((0, 2), np.int64)
    if key:
        first, second = _matched(gone.keys, come.keys), _matched(come.keys, gone.keys)
        pairs = np.column_stack([_by_key(gone.only(first)), _by_key(come.only(second))])
        pairs = pairs[np.argsort(pairs[:, 0])]
        gone, come = gone.only(~first), come.only(~second)
    names = [one.name for one in columns]
    was = _shown(old, [*pairs[:most, 0], *gone.numbers[:most]], names, found, until)
    are = _shown(new, [*pairs[:most, 1], *come.numbers[:most]], names, found, until)
    both = min(len(pairs), most)
    rows = [
        Row(one.values, other.values, [n for n in found if one.hashes[n] != other.hashes[n]])
        for one, other in zip(was[:both], are[:both], strict=True)
    ]
    rows += [Row(one.values, None, []) for one in was[both:]]
    rows += [Row(None, one.values, []) for one in are[both:]]
    return Compared(list(columns), same, len(pairs), len(gone.numbers), len(come.numbers), rows)


def _types(files: Sequence[Source]) -> dict[str, pa.DataType]:
    """Return the columns of files with the type that all values have; null if there is none."""
    found: dict[str, pa.DataType] = {}
    for file in files:
        for name, kind in file.types.items():
            found[name] = found[name] and _common(found[name], kind) if name in found else kind
    return {name: pa.null() if kind is None else kind for name, kind in found.items()}


def _common(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """Return the type in which values of two types are compared; None if they can't be."""
    kinds = one, other
    if all(map(pa.types.is_struct, kinds)):
        fields = [{field.name: field.type for field in kind} for kind in kinds]
        parts = {
            name: reduce(_widened, [of[name] for of in fields if name in of])
            for name in fields[0] | fields[1]
        }
        parts = {name: kind and _common(kind, kind) for name, kind in parts.items()}
        return None if None in parts.values() else pa.struct(list(parts.items()))
    if all(map(pa.types.is_map, kinds)):
        key, item = _common(one.key_type, other.key_type), _common(one.item_type, other.item_type)
        return key and item and pa.map_(key, item)
    if all(pa.types.is_list(kind) or pa.types.is_large_list(kind) for kind in kinds):
        element = _common(one.value_type, other.value_type)
        return element and pa.list_(element)
    for narrow, wide in ((pa.string(), pa.large_string()), (pa.binary(), pa.large_binary())):
        if all(kind in (narrow, wide) for kind in kinds):
            return narrow
    if one == other and any(is_leaf(one) for is_leaf in _LEAVES):
        return one
    if all(map(pa.types.is_signed_integer, kinds)):
        return pa.int64()
    if all(is_exact(kind) and not pa.types.is_unsigned_integer(kind) for kind in kinds):
        return pa.decimal128(38, max(getattr(kind, "scale", 0) for kind in kinds))
    if all(is_number(kind) and not pa.types.is_unsigned_integer(kind) for kind in kinds):
        return pa.float64()
    if {pa.date32(), pa.timestamp("us")} == set(kinds):
        return pa.timestamp("us")
    return None


def _widened(one: pa.DataType | None, other: pa.DataType) -> pa.DataType | None:
    return one and _common(one, other)


def _read(
    files: Sequence[Source], kinds: Mapping[str, pa.DataType], key: Sequence[str],
    within: Spans | None, until: float,
) -> _Read:  # fmt: skip
    """Return the rows of files, by the hashes of columns in these types and of the key."""
    parts = [_Read(np.zeros(0, np.uint64), np.zeros(0, np.uint64), np.zeros(0, np.int64))]
    first = 0
    for file in files:
        for rows, given in file.pieces(list(kinds)):
            check_time(until)
            columns = {name: _as(name, given.get(name), kinds[name], rows) for name in kinds}
            keys = _hashes([columns[name] for name in key], rows)
            numbers = np.arange(first, first + rows)
            part = _Read(_hashes(list(columns.values()), rows), keys, numbers)
            first += rows
            if within is not None:
                part = part.only(_inside(columns[PLACE[0]], columns[PLACE[1]], within))
            parts.append(part)
    return _Read(*(np.concatenate(one) for one in zip(*parts, strict=True)))


def check_time(until: float) -> None:
    """Raise InvalidInput if it is later, by `time.monotonic`."""
    if time.monotonic() > until:
        raise InvalidInput(
            "answer_too_large",
            "it takes too long to compare these outputs here; choose a batch of fewer events, or "
            "compare them in a terminal.",
        )


def _as(name: str, given: pa.Array | None, kind: pa.DataType, rows: int) -> pa.Array:
    if given is None:  # a file of some batches may lack a column that others have
        return pa.nulls(rows, kind)
    try:
        return given.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise _Unlike(name) from None


def _hashes(columns: Sequence[pa.Array], rows: int) -> U64:
    names = [str(i) for i in range(len(columns))]
    rank = pa.array(np.zeros(rows, np.int64))
    return row_hashes(pa.record_batch([*columns, rank], names=[*names, SEQ]), names)


def _inside(segments: pa.Array, offsets: pa.Array, within: Spans) -> NDArray[np.bool_]:
    """Return which rows are of events at some places."""
    if segments.null_count or offsets.null_count:
        raise NoPlaces
    segment, offset = segments.cast(pa.int64()).to_numpy(), offsets.cast(pa.int64()).to_numpy()
    found = np.zeros(len(segment), np.bool_)
    for one, spans in within.items():
        for begin, end in spans:
            found |= (segment == one) & (offset >= begin) & (offset < end)
    return found


def _nth(values: U64) -> Rows:
    """Return of each value how many equal ones come before it."""
    order = np.argsort(values, kind="stable")
    ordered, places = values[order], np.arange(len(values))
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(values)]
    found = np.empty(len(values), np.int64)
    found[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return found


def _matched(one: U64, other: U64) -> NDArray[np.bool_]:
    """Return which values have one of their own among others, as often as it is there."""
    ordered = np.sort(other)
    there = np.searchsorted(ordered, one, "right") - np.searchsorted(ordered, one, "left")
    return np.asarray(_nth(one) < there)


def _by_key(of: _Read) -> Rows:
    """Return the numbers of rows in the order of their keys."""
    return of.numbers[np.lexsort((_nth(of.keys), of.keys))]


class _Seen(NamedTuple):
    """A row as it is shown, and the hashes of its columns."""

    values: dict[str, object]
    hashes: dict[str, int]


def _shown(
    files: Sequence[Source], numbers: Sequence[np.int64], names: Sequence[str],
    kinds: Mapping[str, pa.DataType], until: float,
) -> list[_Seen]:  # fmt: skip
    """Return rows by their numbers over all files: only the row groups that have one are read."""
    wanted, found, first = np.sort(np.array(numbers, np.int64)), dict[int, _Seen](), 0
    for file in files:
        for part, size in enumerate(file.sizes):
            past = first + size
            if np.searchsorted(wanted, first) == np.searchsorted(wanted, past):
                first = past
                continue
            for rows, given in file.pieces(names, part):
                check_time(until)
                begin, end = np.searchsorted(wanted, [first, first + rows])
                those = pa.array(wanted[begin:end] - first)
                some = {name: one.take(those) for name, one in given.items()}
                hashes = {
                    name: _hashes([_as(name, some.get(name), kind, len(those))], len(those))
                    for name, kind in kinds.items()
                }
                for i, values in enumerate(rows_of(pa.table(some))):
                    seen = {name: int(of[i]) for name, of in hashes.items()}
                    found[int(wanted[begin + i])] = _Seen(values, seen)
                first += rows
    return [found[int(one)] for one in numbers]
