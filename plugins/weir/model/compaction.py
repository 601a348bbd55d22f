"""Which neighbouring files become one, so that few small files are left, and little is written
again (docs/decisions/0071)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

ROWS = 1_000_000  # no compacted file has more
FILES = 20_000  # nor is it made of more files
FEWEST = 8  # neighbours that are put together by themselves
GROWTH = 4  # times as large as the largest of them must the new file be


class Small(NamedTuple):
    """A file with less than half of what a file is to have. `weight`: what it has of that: the
    largest part of the bytes, of the rows, and of the files that one is made of."""

    segment_id: int
    start_offset: int
    events: int
    bytes: int
    schema_version: int
    transaction_number: int | None  # None: it has the clock of each row
    clock: int | None  # of its transaction
    path: str
    erased: int = 0  # of its offsets, which have no row

    @property
    def rows(self) -> int:
        return self.events - self.erased

    def weight(self, size: int) -> float:
        return max(self.bytes / size, self.events / ROWS, 1 / FILES)


def groups_of(files: Iterable[Small], size: int, *, thorough: bool = False) -> list[list[Small]]:
    """Return the groups of neighbours that are to become one file each, of at most `size` bytes and
    `ROWS` rows, or little more. `files`: of one stream.

    A group has at least `FEWEST` files, and is at least `GROWTH` times as large as its largest one.
    So each byte is written again at most once for each factor `GROWTH` between the file that it was
    appended with and `size`, and of each size only a few files are left. `thorough`: all neighbours
    that fit together are a group.
    """
    found: list[list[Small]] = []
    ordered = sorted(files, key=lambda file: (file.segment_id, file.start_offset))
    neighbours: list[Small] = []
    for file in ordered:
        if neighbours and not _follows(neighbours[-1], file):
            found += _divided(neighbours, size, thorough)
            neighbours = []
        neighbours.append(file)
    return found + _divided(neighbours, size, thorough)


def _follows(one: Small, other: Small) -> bool:
    return (
        one.segment_id == other.segment_id
        and one.start_offset + one.events == other.start_offset
        and one.schema_version == other.schema_version
    )


def _divided(neighbours: Sequence[Small], size: int, thorough: bool) -> list[list[Small]]:
    """Return the groups of a row of neighbours."""
    found: list[list[Small]] = []
    part: list[Small] = []
    weight = 0.0
    for file in neighbours:
        if part and weight + file.weight(size) > 1 + 1e-9:
            found += _worth(part, size, thorough)
            part, weight = [], 0.0
        part.append(file)
        weight += file.weight(size)
    return found + _worth(part, size, thorough)


def _worth(part: list[Small], size: int, thorough: bool) -> list[list[Small]]:
    """Return what of a row of neighbours is worth being written again: all of it, or the parts
    before and after its largest files."""
    if len(part) < 2 or (not thorough and len(part) < FEWEST):
        return []
    if thorough:
        return [part]
    found: list[list[Small]] = []
    rest = [part]
    while rest:
        one = rest.pop()
        if len(one) < FEWEST:
            continue
        weights = [file.weight(size) for file in one]
        largest = max(weights)
        if sum(weights) >= GROWTH * largest:
            found.append(one)
            continue
        i = weights.index(largest)
        rest += [one[i + 1 :], one[:i]]
    return found
