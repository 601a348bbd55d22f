"""XXH64 as its specification describes it: what any other language would compute.

Written from https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, not from Spark.
"""

from functools import cache

_1, _2, _3, _4, _5 = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)
_ALL = (1 << 64) - 1


def _rotated(value: int, by: int) -> int:
    return ((value << by) | (value >> (64 - by))) & _ALL


def _round(accumulator: int, lane: int) -> int:
    return _rotated((accumulator + lane * _2) & _ALL, 31) * _1 & _ALL


def xxh64(data: bytes, seed: int = 42) -> int:
    """Return the unsigned 64-bit hash."""
    rest = data
    if len(data) >= 32:
        lanes = [(seed + _1 + _2) & _ALL, (seed + _2) & _ALL, seed, (seed - _1) & _ALL]
        while len(rest) >= 32:
            for i in range(4):
                lanes[i] = _round(lanes[i], int.from_bytes(rest[8 * i : 8 * i + 8], "little"))
            rest = rest[32:]
        value = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True))
        for lane in lanes:
            value = ((value ^ _round(0, lane)) * _1 + _4) & _ALL
    else:
        value = seed + _5
    value = (value + len(data)) & _ALL
    while len(rest) >= 8:
        value ^= _round(0, int.from_bytes(rest[:8], "little"))
        value = (_rotated(value, 27) * _1 + _4) & _ALL
        rest = rest[8:]
    if len(rest) >= 4:
        value ^= int.from_bytes(rest[:4], "little") * _1 & _ALL
        value = (_rotated(value, 23) * _2 + _3) & _ALL
        rest = rest[4:]
    for byte in rest:
        value ^= byte * _5 & _ALL
        value = _rotated(value, 11) * _1 & _ALL
    value = (value ^ (value >> 33)) * _2 & _ALL
    value = (value ^ (value >> 29)) * _3 & _ALL
    return value ^ (value >> 32)


@cache
def position(key: str) -> float:
    """Return where a routing key lies in the key space [0, 1)."""
    return (xxh64(key.encode()) >> 11) / 2**53
