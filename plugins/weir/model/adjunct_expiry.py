"""The rule by which versions of an adjunct store expire, and their histories. Pure: no I/O."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

_BASES = 8  # versions that are kept as bases of a history, about, over its whole length


@dataclass(frozen=True)
class Kept:
    """A published version. Times are clocks, in microseconds. `superseded`: when the next version
    was published (None: it is the newest). `line`: versions of one definition and code have one
    history. `history_from`: its history has all changes after this clock (None: it has none)."""

    version: int
    line: object
    clock: int
    superseded: int | None
    published: bool = True
    history_from: int | None = None


@dataclass(frozen=True)
class Expiry:
    """The versions whose table, and those whose history, nobody needs any more."""

    tables: frozenset[int]
    histories: frozenset[int]


def expire(
    versions: Sequence[Kept],
    *,
    now: int,
    keep: int,
    history: int | None,
    pinned: Iterable[int] = (),
    asked: Iterable[tuple[object, int]] = (),
) -> Expiry:
    """Return what expires of one store.

    `versions`: all that were published, with those whose table has expired but not their history.
    `keep`: for how many microseconds a version is kept after it was superseded. `history`: for how
    many microseconds changes are kept; None: none are. `pinned`: the versions that open batches are
    read with. `asked`: pairs of a line and the oldest clock that an open batch asks for in it.

    A history begins at a version that is complete to a clock before it. So with a history, of the
    versions that would expire a few are kept, and the newest one that is older than the history.
    """
    pinned = set(pinned)
    ordered = sorted(versions, key=lambda v: v.version)
    asked = list(asked)
    tables: set[int] = set()
    histories: set[int] = set()
    for line in dict.fromkeys(v.line for v in ordered):
        mine = [v for v in ordered if v.line == line]
        clocks = [clock for other, clock in asked if other == line]
        if history is not None:
            clocks.append(now - history)
        needed = {v.version for clock in clocks if (v := _base(mine, clock)) is not None}
        last: Kept | None = None  # the last base that is kept
        for one in mine:
            if not one.published:
                continue
            old = one.superseded is not None and one.superseded + keep <= now
            spaced = last is None or history is None or one.clock - last.clock >= history // _BASES
            base = history is not None and one.clock > now - history and spaced
            if not old or one.version in pinned or one.version in needed or base:
                last = one
            else:
                tables.add(one.version)
        left = [v for v in mine if v.version not in tables]
        histories |= _unneeded(left, mine, clocks)
    return Expiry(frozenset(tables), frozenset(histories))


def _base(versions: Sequence[Kept], clock: int) -> Kept | None:
    """Return the newest version whose table is there and that is complete to at most a clock."""
    found = [v for v in versions if v.published and v.clock <= clock]
    return found[-1] if found else None


def _unneeded(left: Sequence[Kept], all_: Sequence[Kept], clocks: Sequence[int]) -> set[int]:
    """Return the versions of a line whose histories nobody needs: those up to the base of the
    oldest clock that may be asked for; without such a clock, all."""
    having = [v for v in all_ if v.history_from is not None]
    if not clocks:
        return {v.version for v in having}
    base = _base(left, min(clocks))
    return set() if base is None else {v.version for v in having if v.version <= base.version}
