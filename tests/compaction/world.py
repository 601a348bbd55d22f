"""A stream of real files that is changed at random, and everything that can be asked of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from itertools import count
from random import Random
from typing import Any, Self
from unittest.mock import patch

import pyarrow as pa
from sqlalchemy import Connection

from tests.world.groups import ALL, Group
from tests.world.streams import Lane
from weir.arrow.read import concatenated, read_rows
from weir.compaction.run import Budget, compact
from weir.consumers.ranks import rows_in_first_half
from weir.controller.commit import commit
from weir.controller.ownership import read_installation
from weir.controller.read_plan import plan_of_bounds
from weir.database.connection import Database
from weir.errors import WeirError
from weir.kernel import stage as staging
from weir.kernel.attempt import Attempt
from weir.kernel.schema import to_arrow
from weir.kernel.writer import stage_table
from weir.model.bounds import Bound
from weir.model.schema import SEQ
from weir.programs.opening import shared
from weir.reader_groups.batches.alignment import end_of_run
from weir.reader_groups.batches.halves_by_rank import halve_by_rank
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

EVER = Budget(1 << 60, 1e9)


@dataclass
class World:
    """A stream, and moments of its past."""

    lane: Lane
    settings: Settings
    random: Random
    columns: int = 1
    cuts: list[dict[str, Any]] = field(default_factory=list)
    times: list[datetime] = field(default_factory=list)
    waiting: list[Attempt] = field(default_factory=list)
    keys: Iterator[int] = field(default_factory=count)

    @classmethod
    def made(cls, database: Database, settings: Settings, random: Random, **how: Any) -> Self:
        write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
        return cls(Lane.made(database, **how), settings, random)

    def rows(self, most: int = 40) -> pa.Table:
        numbers = [next(self.keys) for _ in range(self.random.randint(1, most))]
        values = {f"v{i}": [n * i for n in numbers] for i in range(self.columns)}
        return pa.table({"key": [f"k{n % 13}" for n in numbers], "n": numbers, **values})

    def append(self, most: int = 40) -> None:
        """Append some rows; of a segment often more than one file."""
        self.write(self.lane.opened(), most)

    def write(self, attempt: Attempt, most: int = 40) -> None:
        with patch.object(staging, "ROWS_PER_FILE", self.random.choice([3, 10, 1000])):
            staged = stage_table(self.settings.warehouse, attempt, self.rows(most))
        commit(self.lane.database, staged)

    def change(self) -> None:
        """Do to the stream what somebody may do."""
        random, lane = self.random, self.lane
        what = random.choice(["append"] * 8 + ["columns", "scale", "begin", "late", "truncate"])
        if what == "columns" and self.columns < 4:
            self.columns += 1
            self.append()
        elif what == "scale":
            names = lane.active()
            if len(names) > 2 and random.random() < 0.5:
                at = random.randrange(len(names) - 1)
                lane.scale(*names[at : at + 2], parts=1)
            else:
                lane.scale(random.choice(names), parts=2)
        elif what == "begin":
            self.waiting.append(lane.opened())
        elif what == "late" and self.waiting:
            self.write(self.waiting.pop(0))
        elif what == "truncate" and self.cuts and random.random() < 0.3:
            self.truncate(random.choice(self.cuts))
        else:
            self.append()
        if random.random() < 0.2:
            self.cuts.append(lane.tail())
        if random.random() < 0.2:
            self.times.append(lane.value("SELECT clock_timestamp()"))

    def truncate(self, cut: dict[str, Any]) -> None:
        inside = {
            k: v if v == "future" else self.random.randint(v * 9 // 10, v) for k, v in cut.items()
        }
        for chosen in (inside, cut):
            try:
                self.lane.truncate(", ".join(f"{k}={v}" for k, v in chosen.items()))
                return
            except WeirError:  # it lies before the head, or a segment was passed
                continue

    def compact(self, **how: Any) -> Sequence[Mapping[str, Any]]:
        """Put files together, of a size of chance."""
        size = self.random.choice([4_000, 20_000, 100_000, 1 << 27])
        settings = replace(self.settings, file_bytes=size)
        thorough = self.random.random() < 0.6
        reports = compact(
            self.lane.database, settings, EVER, [self.lane.name], **{"thorough": thorough, **how}
        )
        assert not [one for one in reports if "error" in one], reports
        return reports

    def questions(self) -> dict[str, Callable[[], Any]]:
        """Return some of what readers may ask, by what it is."""
        random = self.random
        spans: dict[str, dict[str, Any]] = {"in write order": {"order": "stream"}}
        for cut in random.sample(self.cuts, min(1, len(self.cuts))):
            spans |= {f"from {cut}": {"start": cut}, f"to {cut}": {"end": cut}}
        if len(self.times) > 1:
            since, until = sorted(random.sample(self.times, 2))
            spans[f"{since} to {until}"] = {"since": since, "until": until}
        asked: dict[str, Callable[[], Any]] = {
            what: partial(self._read, given) for what, given in spans.items()
        }
        events = random.choice([1, 7, 50])
        asked[f"the last {events}"] = partial(self._tail, events)
        asked = {what: asked[what] for what in random.sample(list(asked), min(2, len(asked)))}
        if random.random() < 0.1:
            asked["aligned batches"] = self._batches
        return asked

    def _read(self, given: dict[str, Any]) -> Any:
        try:
            return shared(self.settings).read(str(self.lane.name), **given).to_pylist()
        except WeirError as error:
            return error.code

    def _tail(self, events: int) -> Any:
        return shared(self.settings).tail(str(self.lane.name), events).to_pylist()

    def _batches(self) -> Any:
        """Return the bounds of the batches of an aligned group, which holds whole commits."""
        group = Group.made(self.lane, aligned=True, subscriber=False)
        until, closed = group.database.transaction(lambda c: end_of_run(c, group.name))
        reader = group.reader()
        found = []
        while batch := reader.open(30, until=until, closed=closed):
            found.append((batch.events, sorted(batch.bounds)))
            reader.commit(batch)
        return found

    def check_write_order(self) -> None:
        """A group that reads in write order gets each event once and in that order, whatever its
        budget, and the halves of a batch follow one another."""
        reader = Group.made(self.lane, subscriber=False).reader()
        read: list[tuple[int, int, int]] = []
        while batch := reader.open(self.random.choice([1, 20, 100, ALL]), order="stream"):
            rows = self.ranked(batch.bounds)
            if len(rows) > 1 and self.random.random() < 0.4:
                first, rest = self.halves(batch.bounds)
                assert self.ranked(first) + self.ranked(rest) == rows
            read += rows
            reader.commit(batch)
        assert [n for _, _, n in read] == [row["n"] for row in self._read({"order": "stream"})]

    def halves(self, bounds: Sequence[Bound]) -> tuple[list[Bound], list[Bound]]:
        """Return the halves of a batch that is read in write order."""
        warehouse = self.settings.warehouse
        return halve_by_rank(
            self.lane.database, bounds, lambda slices: rows_in_first_half(warehouse, slices)
        )

    def ranked(self, bounds: Any) -> list[tuple[int, int, int]]:
        """Return clock, rank and number of the events within bounds, in write order."""
        wanted: list[Bound] = [b for b in bounds if b.end > b.start]

        def plan(connection: Connection) -> Any:
            spans = [(b.segment_id, b.start, b.end) for b in wanted]
            return plan_of_bounds(connection, self.lane.stream_id, spans)

        slices, fields = self.lane.database.snapshot(plan)
        schema = to_arrow(fields)
        found = concatenated(
            [read_rows(self.settings, s, schema, ["n"]) for s in slices], schema, ["n"]
        )
        columns = [found[name].to_pylist() for name in ("_clock", SEQ, "n")]
        return sorted(zip(*columns, strict=True))
