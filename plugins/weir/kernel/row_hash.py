"""The hash of a row, of which digests are made, with numpy and without a JVM (semantics 18.1).

Spark's `xxhash64` gives the same numbers: `tests/kernel/test_digests.py` has a sum of them.
"""

import sys
from collections.abc import Mapping
from typing import TypeVar

import numpy as np
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from weir.errors import InvalidInput
from weir.model.digest import MASK, presence_of
from weir.model.key_space import SEED
from weir.model.schema import SEQ

U64 = NDArray[np.uint64]
N = TypeVar("N", bound=np.generic)
_ROWS = 1 << 13  # at once, so that numpy's intermediate results stay in the processor's cache
_LONG = 512  # bytes: one text of more is hashed by itself
_P1, _P2, _P3, _P4, _P5 = (
    np.uint64(prime)
    for prime in (
        0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
        0x27D4EB2F165667C5,
    )
)  # fmt: skip
_NAN = np.uint64(0x7FF8000000000000)
assert sys.byteorder == "little", sys.byteorder  # as Arrow's buffers are


def row_hashes(
    batch: pa.RecordBatch, names: list[str], known: Mapping[str, U64] | None = None
) -> U64:
    """Return the hash of each row of a batch: of its rank and the columns `names`, sorted. `known`:
    the hashes of the texts of some of them."""
    parts = []
    for first in range(0, batch.num_rows, _ROWS):
        found = {name: all_[first : first + _ROWS] for name, all_ in (known or {}).items()}
        parts.append(_row_hashes(batch.slice(first, _ROWS), names, found))
    return np.concatenate([np.zeros(0, np.uint64), *parts])


def _row_hashes(batch: pa.RecordBatch, names: list[str], known: Mapping[str, U64]) -> U64:
    presence = np.full(batch.num_rows, 0, np.uint64)
    for name in names:
        column, said = batch.column(name), np.uint64(presence_of(name) & MASK)
        if column.null_count:
            np.bitwise_xor(presence, said, out=presence, where=_valid(column))
        else:
            presence ^= said
    hashes = np.full(batch.num_rows, SEED, np.uint64)
    hashes = _add(hashes, _longs(batch.column(SEQ)))
    hashes = _add(hashes, presence)
    for name in names:
        hashes = _with(hashes, batch.column(name), known.get(name))
    return hashes


def _with(hashes: U64, array: pa.Array, values: U64 | None = None) -> U64:
    """Return hashes with a further value each; a null leaves them as they are."""
    found = _add(hashes, _values(array) if values is None else values)
    return np.where(_valid(array), found, hashes) if array.null_count else found


def _valid(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(array.is_valid().to_numpy(zero_copy_only=False))


def _values(array: pa.Array) -> U64:
    """Return the 64 bits that stand for each value; any for a null."""
    kind = array.type
    if pa.types.is_boolean(kind):
        return _numbers(array.cast(pa.uint8()), np.uint8).astype(np.uint64)
    if pa.types.is_integer(kind) or pa.types.is_date32(kind):
        return _numbers(array, np.dtype(f"i{kind.bit_width // 8}")).astype(np.int64).view(np.uint64)
    if pa.types.is_timestamp(kind) and kind.unit == "us":
        return _longs(array)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        # Adding zero makes -0.0 the same as 0.0.
        numbers = _numbers(array, np.dtype(f"f{kind.bit_width // 8}")).astype(np.float64) + 0.0
        return np.where(np.isnan(numbers), _NAN, numbers.view(np.uint64))
    if pa.types.is_decimal128(kind):
        return _decimals(array)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _texts(array, np.int32)
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return _texts(array, np.int64)
    if pa.types.is_struct(kind):
        return _structs(len(array), array.flatten())
    if pa.types.is_map(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(array)
    raise InvalidInput(
        "column_type_unsupported", f"has the type {kind}, which can only be read with Spark."
    )


def _numbers(array: pa.Array, kind: np.dtype[N] | type[N]) -> NDArray[N]:
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), kind)
    return np.frombuffer(data, kind, len(array) + array.offset)[array.offset :]


def _longs(array: pa.Array) -> U64:
    return _numbers(array, np.uint64)


def _structs(rows: int, parts: list[pa.Array]) -> U64:
    """Return what stands for structs: each field's hash is of its number and its value."""
    found = np.zeros(rows, np.uint64)
    for i, part in enumerate(parts):
        found ^= _with(_add(np.full(rows, SEED, np.uint64), np.full(1, i, np.uint64)), part)
    return found


def _lists(array: pa.Array) -> U64:
    """Return what stands for lists, and for maps, which are lists of structs."""
    offsets = _offsets(array, np.int64 if pa.types.is_large_list(array.type) else np.int32)
    first, last = int(offsets[0]), int(offsets[-1])
    begins, ends = offsets[:-1] - first, offsets[1:] - first
    counts = ends - begins
    places = np.arange(last - first) - np.repeat(begins, counts)
    hashes = _add(np.full(last - first, SEED, np.uint64), places.view(np.uint64))
    if pa.types.is_map(array.type):
        parts = [one.slice(first, last - first) for one in (array.keys, array.items)]
        hashes = _add(hashes, _structs(last - first, parts))
    else:
        hashes = _with(hashes, array.values.slice(first, last - first))
    found = np.zeros(len(array), np.uint64)
    some = counts > 0
    if some.any():
        found[some] = np.bitwise_xor.reduceat(hashes, begins[some])
    return found


def _offsets(array: pa.Array, kind: type[np.int32 | np.int64]) -> NDArray[np.int64]:
    data = array.buffers()[1]
    if len(array) == 0 or data is None:
        return np.zeros(len(array) + 1, np.int64)
    rows = len(array) + 1
    found = np.frombuffer(data, kind, rows + array.offset)[array.offset :]
    return found.astype(np.int64)


def _texts(array: pa.Array, kind: type[np.int32 | np.int64]) -> U64:
    offsets = _offsets(array, kind)
    first, last = int(offsets[0]), int(offsets[-1])
    data = array.buffers()[2]
    return xxh64(b"" if data is None else memoryview(data)[first:last], offsets - first)


def _decimals(array: pa.Array) -> U64:
    """Return the digits as a number; of more than 18 the hash of their bytes, as Java has them."""
    whole = _numbers_of_decimals(array)
    if array.type.precision <= 18:
        return np.ascontiguousarray(whole[:, :8]).view(np.uint64).ravel()
    big = whole[:, ::-1]  # the highest byte first
    sign = np.where(big[:, 0] >= 128, 255, 0).astype(np.uint8)
    needed = big != sign[:, None]
    first = np.where(needed.any(axis=1), needed.argmax(axis=1), 15)
    # One byte more if the sign could not be seen.
    top = big[np.arange(len(big)), first] >= 128
    first = np.where((top != (sign == 255)) & (first > 0), first - 1, first)
    kept = np.arange(16) >= first[:, None]
    offsets = np.concatenate([[0], np.cumsum(16 - first)])
    return xxh64(np.ascontiguousarray(big)[kept].tobytes(), offsets)


def _numbers_of_decimals(array: pa.Array) -> NDArray[np.uint8]:
    data = array.buffers()[1]
    if data is None:
        return np.zeros((len(array), 16), np.uint8)
    end = len(array) + array.offset
    return np.frombuffer(data, np.uint8, 16 * end).reshape(end, 16)[array.offset :]


def xxh64(data: bytes | memoryview, offsets: NDArray[np.int64]) -> U64:
    """Return XXH64, with the seed of routing (semantics 1.6), of texts that follow one another."""
    begins, lengths = offsets[:-1], np.diff(offsets)
    padded = np.zeros(len(data) + 8, np.uint8)  # so that 8 bytes can be read at each place
    padded[:-8] = np.frombuffer(data, np.uint8)
    words = np.lib.stride_tricks.as_strided(padded[:8].view(np.uint64), (len(data) + 1,), (1,))
    hashes = np.full(len(lengths), np.uint64(SEED) + _P5, np.uint64)
    stripes = lengths >> 5
    if stripes.any():
        _add_stripes(hashes, words, begins, np.where(lengths > _LONG, 0, stripes))
    hashes += lengths.view(np.uint64)
    at = begins + (stripes << 5)
    rest = lengths & 31
    for i in range(3):
        if len(rows := np.flatnonzero(rest >= 8 * (i + 1))) == 0:
            break
        hashes[rows] = _rotated(hashes[rows] ^ _round(words[at[rows] + 8 * i]), 27) * _P1 + _P4
    at = at + (rest & 24)
    if len(rows := np.flatnonzero(rest & 4)):
        four = words[at[rows]] & np.uint64(0xFFFFFFFF)
        hashes[rows] = _rotated(hashes[rows] ^ four * _P1, 23) * _P2 + _P3
    at = at + (rest & 4)
    for i in range(3):
        if len(rows := np.flatnonzero(rest & 3 > i)) == 0:
            break
        one = padded[at[rows] + i].astype(np.uint64)
        hashes[rows] = _rotated(hashes[rows] ^ one * _P5, 11) * _P1
    _finish(hashes)
    for row in np.flatnonzero(lengths > _LONG):
        whole = padded[begins[row] : begins[row] + lengths[row]]
        hashes[row] = xxhash.xxh64_intdigest(whole.tobytes(), SEED)
    return hashes


def _add_stripes(
    hashes: U64, words: U64, begins: NDArray[np.int64], stripes: NDArray[np.int64]
) -> None:
    """Begin the hashes of texts of 32 bytes and more by their stripes of 32 bytes."""
    rows = np.flatnonzero(stripes)
    starts = (SEED + int(_P1) + int(_P2), SEED + int(_P2), SEED, SEED - int(_P1))
    lanes = [np.full(len(rows), np.uint64(start & MASK)) for start in starts]
    for i in range(int(stripes.max(initial=0))):
        alive = np.flatnonzero(stripes[rows] > i)
        for j, lane in enumerate(lanes):
            word = words[begins[rows[alive]] + 32 * i + 8 * j]
            lane[alive] = _rotated(lane[alive] + word * _P2, 31) * _P1
    found = np.zeros(len(rows), np.uint64)
    for lane, by in zip(lanes, (1, 7, 12, 18), strict=True):
        found += _rotated(lane, by)
    for lane in lanes:
        found = (found ^ _round(lane)) * _P1 + _P4
    hashes[rows] = found


def _add(hashes: U64, values: U64) -> U64:
    """Return XXH64 of 8 bytes each, with the hashes before as seeds: how Spark hashes a long."""
    found: U64 = hashes + (_P5 + np.uint64(8))
    found ^= _round(values)
    found = _rotated(found, 27)
    found *= _P1
    found += _P4
    _finish(found)
    return found


def _round(values: U64) -> U64:
    return _rotated(values * _P2, 31) * _P1


def _rotated(values: U64, by: int) -> U64:
    left = values << np.uint64(by)
    left |= values >> np.uint64(64 - by)
    return left


def _finish(hashes: U64) -> None:
    hashes ^= hashes >> np.uint64(33)
    hashes *= _P2
    hashes ^= hashes >> np.uint64(29)
    hashes *= _P3
    hashes ^= hashes >> np.uint64(32)


def hashes_of_longs(array: pa.Array) -> U64:
    """Return XXH64 of longs without nulls, with the seed of routing (semantics 1.6)."""
    return _add(np.full(len(array), SEED, np.uint64), _longs(array))


def hashes_of_texts(array: pa.Array) -> U64:
    """Return XXH64 of texts, with the seed of routing (semantics 1.6); any number for a null."""
    parts = [array.slice(first, _ROWS) for first in range(0, len(array), _ROWS)]
    return np.concatenate([np.zeros(0, np.uint64), *(_texts(part, np.int32) for part in parts)])
