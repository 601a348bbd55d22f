"""Digests: one number for many events, whatever files they lie in (semantics 18.1)."""

from collections.abc import Iterable
from functools import lru_cache

import xxhash

from weir.model.key_space import SEED
from weir.model.schema import Kind, parts_of

MASK = (1 << 64) - 1


def signed(number: int) -> int:
    """Return a number modulo 2^64 as a signed long, as Spark and Postgres keep it."""
    return (number & MASK) - ((number & 1 << 63) << 1)


def hash_of(data: bytes) -> int:
    """Return XXH64 of bytes, with the seed of routing (semantics 1.6), as a signed long."""
    return signed(xxhash.xxh64_intdigest(data, SEED))


@lru_cache(maxsize=10_000)
def presence_of(name: str) -> int:
    """Return the signed long by which rows say that a column has a value: the hash of its name."""
    return hash_of(name.encode())


def digest(sums: Iterable[tuple[int, int]]) -> int:
    """Return the digest of events, from the sum of the hashes of the rows of each clock:
    (clock, sum). Digests of disjoint events can be added, modulo 2^64."""
    return signed(sum(total * (2 * clock + 1) for clock, total in sums))


def is_hashed(kind: Kind) -> bool:
    """Return whether a column of a type (Spark's JSON form) is in the hash of a row. Those that
    hold variants are not: equal ones may have other bytes, which only Spark can compare."""
    return kind != "variant" and all(map(is_hashed, parts_of(kind)))
