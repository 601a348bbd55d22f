"""Reader groups over streams of invented files: what consumers do, without Spark."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sqlalchemy import Connection, text

from tests.world.streams import Lane, rows, run, unique
from weir.controller.transactions import Committed
from weir.database.connection import Database, copy_in
from weir.kernel.attempt import Staged
from weir.model.segment import Segment, segment_name
from weir.model.stream_cut import StreamCut, check_valid
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.lifecycle import commit_batch, open_in
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.group_streams import group_tails
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join, leave, renew
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table

LEASE = 60.0
ALL = 10**12
Execute = Callable[..., None]  # the fixture `as_owner`


def budget(events: int = ALL) -> Budget:
    """Return a budget of so many events, in whatever files."""
    return Budget(events, ALL, ALL)


def open_batch(
    database: Database,
    group: str,
    reader_id: str,
    token: int,
    *,
    budget: Budget,
    order: str = "segment",
    expected_readers: int = 1,
    **how: Any,
) -> Batch | None:
    """Open a batch in a transaction of its own, and return it."""
    reading = Reading(budget, order, expected_readers)
    return database.transaction(lambda c: open_in(c, group, reader_id, token, reading, **how))


@dataclass
class Group:
    """A reader group, and short ways to do to it what readers do."""

    database: Database
    name: str
    lanes: tuple[Lane, ...]

    @classmethod
    def made(cls, *lanes: Lane, name: str = "", **options: Any) -> "Group":
        name = name or unique("group")
        create_reader_group(
            lanes[0].database, name, [lane.name for lane in lanes], request_id=unique("create"),
            **options,
        )  # fmt: skip
        return cls(lanes[0].database, name, lanes)

    def reader(self, reader_id: str = "reader", label: str = "") -> "Reader":
        """Join, or come back, and return the reader."""
        token = join(self.database, self.name, reader_id, LEASE, label=label)
        return Reader(self, reader_id, token)

    def rows(self, sql: str, **parameters: Any) -> list[Any]:
        """Return the rows of a query that names the group `:g`."""
        return rows(self.database, sql, g=self.group_id, **parameters)

    @cached_property
    def group_id(self) -> int:
        [[found]] = rows(
            self.database, "SELECT group_id FROM reader_group WHERE name = :name", name=self.name
        )
        return int(found)

    def lapse(self, *reader_ids: str) -> None:
        """Let the leases of readers run out, as if they had died."""
        run(
            self.database,
            """UPDATE reader r SET lease_until = pg_postmaster_start_time()
            FROM reader_group g WHERE g.group_id = r.group_id AND g.name = :name
            AND r.reader_id = ANY(:readers) AND r.lease_until > '-infinity'""",
            name=self.name,
            readers=list(reader_ids),
        )

    def cut(self, lane: Lane | None = None) -> dict[str, Any]:
        """Return where the group stands in a stream."""
        stream_id = (lane or self.lanes[0]).stream_id
        [[cut]] = self.rows("SELECT group_cut(:g, :s)", s=stream_id)
        return dict(cut)

    def states(self, lane: Lane | None = None) -> dict[str, tuple[str, int | None, str | None]]:
        """Return per segment its state, position and owner."""
        found = self.rows(
            """SELECT segment_id, state, next_offset, reader_id FROM reader_group_segment
            WHERE group_id = :g AND stream_id = :s ORDER BY segment_id""",
            s=(lane or self.lanes[0]).stream_id,
        )
        return {segment_name(r.segment_id): (r.state, r.next_offset, r.reader_id) for r in found}

    def owned(self, reader_id: str, lane: Lane | None = None) -> list[str]:
        return [name for name, state in self.states(lane).items() if state[2] == reader_id]

    def readers(self) -> list[str]:
        found = self.rows("SELECT reader_id FROM reader WHERE group_id = :g ORDER BY reader_id")
        return [row.reader_id for row in found]

    def batches(self) -> list[Any]:
        return self.rows("SELECT * FROM reader_batch WHERE group_id = :g ORDER BY batch_id")

    def lost(self, lane: Lane | None = None) -> int:
        [[lost]] = self.rows(
            "SELECT lost_events FROM reader_group_stream WHERE group_id = :g AND stream_id = :s",
            s=(lane or self.lanes[0]).stream_id,
        )
        return int(lost)

    def released(self, lane: Lane | None = None) -> dict[str, Any] | None:
        [[cut]] = self.rows(
            "SELECT released_cut FROM reader_group_stream WHERE group_id = :g AND stream_id = :s",
            s=(lane or self.lanes[0]).stream_id,
        )
        return None if cut is None else dict(cut)

    def checkpoint(self, name: str | None = None, request_id: str | None = None) -> Any:
        return checkpoint(self.database, self.name, name=name, request_id=request_id)

    def update(self, **changes: Any) -> Mapping[str, Any]:
        return update_reader_group(self.database, self.name, request_id=unique("update"), **changes)

    def tails(self) -> dict[int, dict[str, Any]]:
        return self.database.transaction(lambda c: group_tails(c, self.name))

    def delete_in(self, connection: Connection) -> None:
        """Delete the rows of the group, as its deletion does, in a transaction that goes on."""
        for table in (
            "reader_group_segment", "reader_batch", "reader", "checkpoint", "reader_group_stream",
            "reader_group",
        ):  # fmt: skip
            sql = f"DELETE FROM {table} WHERE group_id = :g"
            connection.execute(text(sql), {"g": self.group_id})

    def check_positions(self) -> None:
        """Check that the positions are a frontier of each stream."""
        for lane in self.lanes:
            known = lane.rows(
                """SELECT segment_id, key_low, key_high, coalesce(tail_offset, s.events) AS ends_at
                FROM segment s LEFT JOIN segment_tail t USING (stream_id, segment_id)
                WHERE stream_id = :s"""
            )
            segments = {row.segment_id: Segment(*row[:3]) for row in known}
            ends = {row.segment_id: row.ends_at for row in known}
            check_valid(StreamCut.from_json(self.cut(lane), segments), segments.values(), ends)


@dataclass
class Reader:
    """One reader of a group, with the token it was given when it joined."""

    group: Group
    reader_id: str
    token: int

    def open(
        self,
        budget: int = ALL,
        *,
        bytes_: int = ALL,
        files: int = ALL,
        until: dict[int, dict[str, Any]] | None = None,
        expected: int = 1,
        lease: float = 0.0,
        **how: Any,
    ) -> Batch | None:
        """Open a batch, and return it. `budget`: events. `lease` 0: whoever's lease ran out may be
        replaced at once."""
        return open_batch(
            self.group.database, self.group.name, self.reader_id, self.token, lease=lease,
            budget=Budget(budget, bytes_, files), until=until, expected_readers=expected, **how,
        )  # fmt: skip

    def must_open(self, budget: int = ALL, **options: Any) -> Batch:
        batch = self.open(budget, **options)
        assert batch is not None
        return batch

    def commit(
        self, batch: Batch, staged: Sequence[Staged] = (), **options: Any
    ) -> list[Committed]:
        return commit_batch(self.group.database, batch, lease=LEASE, staged=staged, **options)

    def read_batch(self, budget: int = ALL, **options: Any) -> Batch:
        """Open a batch, commit it, and return it."""
        batch = self.must_open(budget, **options)
        self.commit(batch)
        return batch

    def renew(self) -> None:
        self.group.database.transaction(
            lambda c: renew(c, self.group.name, self.reader_id, self.token, LEASE)
        )

    def leave(self, lease: float = 3600.0) -> None:
        leave(self.group.database, self.group.name, self.reader_id, self.token, lease)

    def read_all(self, budget: int = ALL, **options: Any) -> list[tuple[str, int, int]]:
        """Read batch after batch to the end. Return what was read, in its order."""
        read = []
        while (batch := self.open(budget, **options)) is not None:
            read += spans(batch)
            self.commit(batch)
        return read


def events_of(batch: Batch) -> set[tuple[int, int, int]]:
    """Return each event that a batch reads: stream id, segment id, offset."""
    return {(b.stream_id, b.segment_id, o) for b in batch.bounds for o in range(b.start, b.end)}


def spans(batch: Batch) -> list[tuple[str, int, int]]:
    """Return what a batch reads: segment, from, to."""
    return [(segment_name(b.segment_id), b.start, b.end) for b in batch.bounds if b.end > b.start]


def stage_numbers(group: Group, batch: Batch, table: str, csv: str = "1,one\n2,\n") -> StagedTable:
    """Stage rows for the fixture `table` as executors do, by one copy."""
    columns = [c for c in group.database.transaction(lambda c: read_table(c, table))
               if c.name != "at"]  # fmt: skip
    staging, copy = make_staging(group.database, batch, 0, columns)
    data = io.BytesIO(csv.encode())
    piece = group.database.transaction(lambda c: copy_in(c, copy, data))
    return StagedTable(table, staging, (piece,), csv.count("\n"))


def publish(group: Group, table: str) -> None:
    """Commit the next batch of a group with rows for the fixture `table`."""
    reader = group.reader()
    batch = reader.must_open()
    reader.commit(batch, tables=[stage_numbers(group, batch, table)])


def numbers(group: Group, table: str) -> list[tuple[Any, ...]]:
    """Return the rows of the fixture `table`."""
    return [tuple(r) for r in rows(group.database, f"SELECT n, said FROM {table} ORDER BY n")]
