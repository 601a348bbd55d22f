"""Does the same to a stream and to its model, and compares what comes back."""

import json
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from random import Random

from tests.controller.model import GRID, Event, Model, Written, as_json
from tests.world.streams import FIELDS, Lane, unique
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.seal import seal_stream
from weir.controller.staged import announce
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.key_space import KeyRange
from weir.model.segment import segment_name
from weir.retention.delete_stream import delete_stream


@dataclass
class Open:
    """An open transaction, and the epoch in which it began."""

    batch: str
    attempt: Attempt
    epoch: int


class Driver:
    """One stream and its model."""

    def __init__(
        self, database: Database, segments: int, name: str | None = None, first: int = 0
    ) -> None:
        self.lane = Lane.made(database, segments=segments, name=name, retention="consumed")
        self.model = Model(segments, first)
        self.open: list[Open] = []
        self.zombies: list[Open] = []
        self.waiting: list[tuple[Open, Staged, Written]] = []
        self.committed: list[Staged] = []
        self.orders = 0
        self.sealed = False

    def begin(self, batch: str | None = None) -> Open:
        batch = batch or unique("batch")
        return Open(batch, self.lane.opened(batch), len(self.model.epochs) - 1)

    def written(self, one: Open, random: Random) -> tuple[Staged, Written]:
        """Return a few events, routed to the segments that the attempt was given: as Weir and as
        the model take them."""
        weight = random.randint(1, 9)
        cells = [random.randrange(GRID) for _ in range(random.randint(0, 6))]
        files: list[StagedFile] = []
        placed: Written = []
        first = self.orders
        self.orders += len(cells)
        for segment in one.attempt.segments:
            mine = [
                Event(cell, first + i, weight)
                for i, cell in enumerate(cells)
                if segment.key_low <= cell / GRID < segment.key_high
            ]
            task = 0
            while mine:
                taken = tuple(mine[: random.randint(1, len(mine))])
                mine = mine[len(taken) :]
                path = f"{one.attempt.folder}_weir_segment={segment.segment_id}/{task}"
                task += 1
                placed.append((segment.segment_id, taken, path))
                files.append(
                    StagedFile(
                        segment.segment_id, path, len(taken), weight * len(taken),
                        taken[0].order, taken[-1].order,
                    )
                )  # fmt: skip
        random.shuffle(files)
        return Staged(one.attempt, tuple(files), FIELDS), placed

    def append(self, random: Random) -> None:
        self.commit([self.begin()], random)

    def commit_some(self, random: Random, count: int) -> None:
        """Commit some of the open transactions, in any order, in one call."""
        chosen = random.sample(self.open, min(count, len(self.open)))
        self.open = [one for one in self.open if one not in chosen]
        self.commit(chosen, random)

    def announce_some(self, random: Random, count: int) -> None:
        """Announce that some open transactions are ready, as if their writers died right then.

        The next roll of their epoch commits them, or their writers do.
        """
        for one in random.sample(self.open, min(count, len(self.open))):
            self.open.remove(one)
            made, placed = self.written(one, random)
            self.lane.database.transaction(partial(announce, staged=made))
            self.waiting.append((one, made, placed))

    def commit_what_waits(self, random: Random) -> None:
        """Commit a transaction that had been announced, as its writer goes on."""
        one, made, placed = self.waiting.pop(random.randrange(len(self.waiting)))
        [done] = commit(self.lane.database, made)
        rolled = self.model.commit(one.epoch, placed)
        if rolled is not None:
            self._end_roll(rolled)
        assert done.rolled == (rolled is not None)
        self.committed.append(made)

    def _end_roll(self, origin: int) -> None:
        """End a roll. All transactions of its epoch that wait are committed with it, in the order
        in which they began."""
        along = sorted(
            (w for w in self.waiting if w[0].epoch == origin),
            key=lambda w: w[0].attempt.transaction_number,
        )
        for waiting in along:
            one, made, placed = waiting
            assert self.model.commit(one.epoch, placed, rolling=origin) == origin
            self.waiting.remove(waiting)
            self.committed.append(made)
        self.model.end_roll()

    def commit(self, chosen: list[Open], random: Random) -> None:
        everything = [self.written(one, random) for one in chosen]
        done = commit(self.lane.database, *[staged for staged, _ in everything])
        rolling = None
        rolled = []
        for one, (_, placed) in zip(chosen, everything, strict=True):
            if rolling is not None and rolling != one.epoch:
                self._end_roll(rolling)
                rolling = None
            rolling = self.model.commit(one.epoch, placed, rolling=rolling)
            rolled.append(rolling is not None)
        if rolling is not None:
            self._end_roll(rolling)
        assert [one.rolled for one in done] == rolled
        assert [one.clock for one in done] == sorted({one.clock for one in done})
        self.committed += [staged for staged, _ in everything]

    def scale(self, random: Random) -> None:
        """Replace some active segments, neighbours or not, by others over the same keys."""
        chosen, runs = self._blocks(random)
        inside = [cell for low, high in runs for cell in range(low + 1, high)]
        cuts = sorted(random.sample(inside, min(len(inside), random.randint(0, 3))))
        if len(self.model.epochs[-1]) > 8:
            cuts = []
        ranges: list[tuple[int, int]] = []
        for low, high in runs:
            ranges += pairwise([low, *[c for c in cuts if low < c < high], high])
        done = scale(
            self.lane.database,
            self.lane.name,
            seal=[self._any_name_of(s, random) for s in chosen],
            ranges=[KeyRange(low / GRID, high / GRID) for low, high in ranges],
            request_id=unique("scale"),
        )
        self.model.scale(chosen, ranges)
        assert done["epoch"] == len(self.model.epochs) - 1
        new = self.model.epochs[-1][len(self.model.epochs[-1]) - len(ranges) :]
        assert [name for name, _, _ in done["created"]] == [segment_name(s) for s in new]

    def _blocks(self, random: Random) -> tuple[list[int], list[tuple[int, int]]]:
        """Return some active segments, and the ranges of the runs of neighbours among them."""
        in_order = sorted(self.model.epochs[-1], key=lambda s: self.model.segments[s].low)
        first = random.randrange(len(in_order))
        chosen = in_order[first : first + random.randint(1, 3)]
        if random.random() < 0.2:
            chosen = sorted({*chosen, random.choice(in_order)})
        runs: list[tuple[int, int]] = []
        for segment in sorted((self.model.segments[s] for s in chosen), key=lambda s: s.low):
            if runs and runs[-1][1] == segment.low:
                runs[-1] = (runs[-1][0], segment.high)
            else:
                runs.append((segment.low, segment.high))
        return chosen, runs

    def _any_name_of(self, s: int, random: Random) -> str:
        """Return a name of a segment. After a roll people may still use the name of an earlier
        copy."""
        same = [t for t in self.model.segments.values() if t.number == s % (1 << 32)]
        return random.choice(same).name

    def update(self, random: Random) -> None:
        """Update the stream to another number of segments: equal ones in place of all."""
        count = random.choice([1, 2, 4])
        before = len(self.model.epochs[-1])
        update_stream(
            self.lane.database, self.lane.name, {"min_segments": count}, request_id=unique("update")
        )
        if count != before:
            width = GRID // count
            self.model.scale(
                list(self.model.epochs[-1]), [(i * width, (i + 1) * width) for i in range(count)]
            )
        update_stream(
            self.lane.database, self.lane.name,
            {"scaling": "event_rate", "target_rate": 1, "min_segments": 1},
            request_id=unique("update"),
        )  # fmt: skip
        update_stream(
            self.lane.database, self.lane.name, {"scaling": "fixed"}, request_id=unique("update")
        )

    def seal(self) -> None:
        """Seal the stream. What waits is committed, epoch by epoch; what is open is aborted."""
        done = seal_stream(self.lane.database, self.lane.name, request_id=unique("seal"))
        assert done["aborted"] == sorted(o.attempt.transaction_number for o in self.open)
        for epoch in sorted({one.epoch for one, _, _ in self.waiting}):
            mine = sorted(
                (w for w in self.waiting if w[0].epoch == epoch),
                key=lambda w: w[0].attempt.transaction_number,
            )
            rolling = None
            for waiting in mine:
                one, made, placed = waiting
                rolling = self.model.commit(one.epoch, placed, rolling=rolling)
                self.waiting.remove(waiting)
                self.committed.append(made)
            if rolling is not None:
                self.model.end_roll()
        self.zombies += self.open
        self.open.clear()
        self.sealed = True

    def deleted_and_made_anew(self, random: Random) -> "Driver":
        """Return the next life of the stream, which has other rows and goes on with the segment
        numbers."""
        delete_stream(self.lane.database, self.lane.name, request_id=unique("delete"))
        left = self.lane.rows(
            "SELECT segment_id FROM segment WHERE stream_id = :s UNION ALL "
            "SELECT segment_id FROM data_file WHERE stream_id = :s"
        )
        assert left == []
        return Driver(
            self.lane.database, random.choice([1, 2, 4]), str(self.lane.name),
            first=self.model.next_number,
        )  # fmt: skip

    def truncate(self, random: Random) -> None:
        cut = self.model.frontier(random, self.model.head)
        before, after = self.model.size_till(self.model.head), self.model.size_till(cut)
        garbage = len(self.model.files_below(cut)) - len(self.model.files_below(self.model.head))
        done = self.lane.truncate(json.dumps(as_json(cut)))
        assert (done["events"], done["bytes"], done["files"]) == (
            after[0] - before[0], after[1] - before[1], garbage,
        )  # fmt: skip
        self.model.head = cut
