"""Streams of invented files whose rows have known ranks, and what readers get of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from tests.world.streams import BYTES_PER_EVENT, FIELDS, Lane
from weir.controller.commit import commit
from weir.controller.read_plan import FileSlice
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.bounds import Bound

Place = tuple[int, int]  # clock and rank: the place of an event in write order
Files = Mapping[str, Sequence[Sequence[int]]]  # by segment the ranks of the rows of its files


def staged(attempt: Attempt, files: Files) -> tuple[Staged, dict[str, list[int]]]:
    """Return what an append would have written, and the ranks in each file by path."""
    found, ranks = [], {}
    names = {segment.name: segment.segment_id for segment in attempt.segments}
    for name, of_segment in files.items():
        for i, rows in enumerate(of_segment):
            path = f"{attempt.folder}_weir_segment={names[name]}/_weir_task={i}/part.parquet"
            size = len(rows) * BYTES_PER_EVENT
            found.append(StagedFile(names[name], path, len(rows), size, rows[0], rows[-1]))
            ranks[path] = list(rows)
    return Staged(attempt, tuple(found), FIELDS), ranks


@dataclass
class Ranked:
    """A stream, and the place in write order of each event at its segment and offset."""

    lane: Lane
    ranks: dict[str, list[int]] = field(default_factory=dict)  # by path of a file

    def append(self, files: Files) -> None:
        self.commit(self.lane.opened(), files)

    def commit(self, attempt: Attempt, files: Files) -> None:
        made, ranks = staged(attempt, files)
        self.ranks |= ranks
        commit(self.lane.database, made)

    def append_some(self, random: Random, attempt: Attempt | None = None) -> None:
        """Append rows that up to three tasks of an append wrote, each to some of the segments."""
        attempt = attempt or self.lane.opened()
        rank = 0
        files: dict[str, list[list[int]]] = {}
        for _ in range(random.randint(1, 3)):
            rows: dict[str, list[int]] = {}
            for _ in range(random.choice([1, 4, 12])):
                rows.setdefault(random.choice(attempt.segments).name, []).append(rank)
                rank += 1
            for name, ranks in rows.items():
                cut = random.choice([len(ranks), random.randint(1, len(ranks))])
                parts = [part for part in (ranks[:cut], ranks[cut:]) if part]
                files.setdefault(name, []).extend(parts)
        self.commit(attempt, files)

    def places(self) -> dict[tuple[int, int], Place]:
        """Return the place of each event in write order, by segment id and offset."""
        rows = self.lane.rows(
            """SELECT f.segment_id, f.start_offset, f.path, t.clock FROM data_file f
            JOIN transaction t USING (stream_id, transaction_number) WHERE f.stream_id = :s"""
        )
        return {
            (row.segment_id, row.start_offset + i): (row.clock, rank)
            for row in rows
            for i, rank in enumerate(self.ranks[row.path])
        }

    def read(self, bounds: Sequence[Bound]) -> list[Place]:
        """Return what a consumer with order="stream" gets of this stream: places, sorted by clock
        and rank."""
        places = self.places()
        return sorted(
            places[b.segment_id, offset]
            for b in bounds
            if b.stream_id == self.lane.stream_id
            for offset in range(b.start, b.end)
        )

    def written(self) -> list[Place]:
        return sorted(self.places().values())

    def rows_in_first_half(self, slices: Sequence[FileSlice]) -> list[int]:
        """Return what `weir.consumers.ranks` finds in real files."""
        found = [self.ranks[one.path][one.first_row : one.end_row] for one in slices]
        every = sorted(rank for ranks in found for rank in ranks)
        middle = every[(len(every) - 1) // 2]
        return [sum(rank <= middle for rank in ranks) for ranks in found]
