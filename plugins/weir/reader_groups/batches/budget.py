"""Limit what one batch reads: its budget, and the files that fit into it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from sqlalchemy import Connection

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.bounds import Bound
from weir.model.segment import Segment
from weir.queries.reader_groups.batches import budget as sql
from weir.settings import Settings

# What a batch takes or leaves as a whole: a file; the files of a commit whose ranks overlap, which
# one task of the append wrote (a *rank run*: what comes before one comes first in write order); or
# the commits of one clock.
Unit = Literal["file", "run", "commit"]


@dataclass(frozen=True)
class Budget:
    """The most that one batch reads. Only its first unit may exceed that, however large it is, so
    that every budget lets a group advance."""

    events: int
    bytes: int
    files: int

    @classmethod
    def of(cls, settings: Settings) -> "Budget":
        """Return the budget of an installation."""
        return cls(settings.batch_events, settings.batch_bytes, settings.batch_files)

    @classmethod
    def within(cls, settings: Settings, events: int, size: int, files: int) -> "Budget":
        """Return a budget of so many events, bytes and files; 0: as many as the installation's.
        Raises InvalidInput for less."""
        named = {"batch_events": events, "batch_bytes": size, "batch_files": files}
        for name, given in named.items():
            if given < 0:
                raise InvalidInput(
                    "argument_invalid",
                    f"{called(name)} is {given}; it must be more than 0, or 0 for the setting "
                    f"{name}.",
                )
        whole = cls.of(settings)
        return cls(events or whole.events, size or whole.bytes, files or whole.files)

    def part(self, parts: int) -> "Budget":
        """Return one of so many equal parts."""
        return Budget(*(max(1, most // parts) for most in (self.events, self.bytes, self.files)))


@dataclass(frozen=True)
class Fit:
    """What fits: by stream and segment id the end offset, or everything if `ends` is None; and the
    bytes of that. `clock`: the newest clock in it, if not everything fits."""

    ends: dict[tuple[int, int], int] | None
    bytes: int
    clock: int | None = None

    def end(self, stream_id: int, segment: Segment, start: int, end: int) -> int:
        """Return how far to read a segment that could be read from `start` to `end`."""
        if self.ends is None:
            return end
        return self.ends.get((stream_id, segment.segment_id), start)


ALL = Fit(None, 0)


def fit(
    connection: Connection, wanted: Sequence[Bound], budget: Budget, unit: Unit = "file"
) -> Fit:
    """Return how much of `wanted` a budget allows.

    It adds commit after commit, and of each commit unit after unit over all its segments, until one
    does not fit. So no part of the key space gets ahead (semantics 16.2), predecessors are read
    before their successors, and no file is read twice for parts of it. The query walks the commits
    by their clocks, no further than the budget, and not at all if everything fits.
    """
    rows = sql.fit(
        connection,
        streams=[bound.stream_id for bound in wanted],
        segments=[bound.segment_id for bound in wanted],
        starts=[bound.start for bound in wanted],
        ends=[bound.end for bound in wanted],
        events=budget.events,
        bytes=budget.bytes,
        files=budget.files,
        unit=unit,
    )
    size = sum(row.bytes for row in rows)
    if rows and rows[0].all_fit:
        return Fit(None, size)
    ends = {(row.stream_id, row.segment_id): row.past for row in rows}
    return Fit(ends, size, max((r.clock for r in rows if r.clock is not None), default=None))
