"""Does the same to a reader group and to its model, and compares what comes back.

A batch's results go to every kind of sink: to a stream, in the transaction of the commit, and to a
folder of the attempt (whose files nobody needs: which attempt counts is what is asked).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

import pytest

from tests.committed_folders import committed_folders
from tests.controller.driver import Driver
from tests.controller.model import Cut, Event, as_json
from tests.raises import raises
from tests.reader_groups.model import Cuts, GroupModel, ModelBatch, Read
from tests.world.groups import Group, Reader
from tests.world.streams import FIELDS, Lane, unique
from weir.controller.read_plan import slices_of_bounds
from weir.controller.transactions import Committed, begin
from weir.database.connection import Database
from weir.errors import Fenced
from weir.kernel.attempt import Staged, StagedFile
from weir.model.bisection import halve
from weir.model.segment import parse_segment_name
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.outputs.records import record_output

ROOT, OUTPUT = "/output", "folder"
TABLES = """reader_group reader_group_stream reader reader_batch reader_group_segment
    checkpoint""".split()


@dataclass
class Process:
    """A process that reads: what it knows, whether or not it has been replaced meanwhile."""

    reader: Reader
    until: dict[int, dict[str, Any]] | None
    batch: Batch | None = None
    read: Read = field(default_factory=dict)
    lost: dict[int, int] = field(default_factory=dict)
    staged: Staged | None = None


class Out:
    """A stream for results, and what must be in it."""

    def __init__(self, database: Database) -> None:
        self.lane = Lane.made(database, segments=1, retention="consumed")
        self.written: dict[str, list[Event]] = {}  # by file
        self.expected: list[Event] = []

    def stage(self, process: Process) -> Staged:
        """Write what a process has read, and return it. Raises Fenced if its batch is another's."""
        batch = process.batch
        assert batch is not None
        attempt = begin(
            self.lane.database, self.lane.name, writer_id=f"group {batch.group}",
            batch_id=batch.identity, fingerprint="", lease=600.0, source="test",
            guard=partial(check_held, batch=batch),
        )  # fmt: skip
        assert not isinstance(attempt, Committed), "its output is there, but not its position"
        events = [event for stream in process.read.values() for event in stream]
        if not events:
            return Staged(attempt, (), FIELDS)
        path = f"{attempt.folder}_weir_segment=0/_weir_task=0/part.parquet"
        self.written[path] = events
        file = StagedFile(0, path, len(events), len(events), 0, len(events) - 1)
        return Staged(attempt, (file,), FIELDS)

    def check(self) -> None:
        """Check that what was committed is there, once and in this order."""
        found = [event for file in self.lane.files() for event in self.written[file.path]]
        assert found == self.expected


class GroupDriver:
    """One group, its model, and the processes that read it."""

    def __init__(
        self, group: Group, drivers: list[Driver], cuts: Cuts, out: Out, **options: Any
    ) -> None:
        self.group, self.out = group, out
        self.drivers = {d.lane.stream_id: d for d in drivers}
        streams = {s: self.drivers[s].model for s in cuts}
        self.model = GroupModel(streams, cuts, **options)
        self.processes: dict[str, Process] = {}
        self.ghosts: list[Process] = []
        self.folders: dict[int, str] = {}  # of the attempts that count, by batch
        self.written: set[str] = set()  # the folders of all attempts

    @property
    def database(self) -> Database:
        return self.group.database

    def lane(self, stream_id: int) -> Lane:
        return self.drivers[stream_id].lane

    # Readers.

    def join(self, name: str, bounded: bool = False) -> None:
        """Let a new process join as `name`. A process that had this name lives on as a ghost."""
        if name in self.processes:
            self.ghosts.append(self.processes.pop(name))
        reader = self.group.reader(name)
        assert reader.token == self.model.join(name)
        self.processes[name] = Process(reader, self.group.tails() if bounded else None)

    def dies(self, name: str) -> None:
        """Let the lease of a process run out, so that it is dead to the others. It lives on as a
        ghost."""
        self.lapse(name)
        self.ghosts.append(self.processes.pop(name))

    def lapse(self, *names: str) -> None:
        self.group.lapse(*names)
        for name in names:
            self.model.lapse(name)

    def leaves(self, name: str) -> None:
        """Let a process leave, in the middle of a batch, too. It lives on as a ghost, which does
        not know."""
        process = self.processes.pop(name)
        process.reader.leave(lease=0.0)
        self.ghosts.append(process)
        if self.model.has(name, process.reader.token):
            self.model.lapse(name)
        self.model.release()

    def renew(self, process: Process) -> None:
        name, token = process.reader.reader_id, process.reader.token
        if self.model.has(name, token):
            process.reader.renew()
            self.model.readers[name].expired = False
        else:
            with pytest.raises(Fenced):
                process.reader.renew()

    # Batches.

    def open(self, name: str, budget: int, expected: int = 1) -> bool:
        """Open a batch, and return whether there was one."""
        process = self.processes[name]
        process.batch = process.staged = None
        reader, model = process.reader, self.model
        opening = partial(reader.open, budget, until=process.until, expected=expected)
        if not model.has(name, reader.token):
            with pytest.raises(Fenced):
                opening()
            self.ghosts.append(self.processes.pop(name))
            return False
        if (resumed := model.resumable(name)) is not None:
            process.batch = opening()
            self._is(process.batch, resumed, model.take(resumed, name))
            self._read(process)
            return True
        if model.on_gap == "fail" and any(model.gaps()[1].values()):
            with raises("events_truncated"):
                opening()
            return False
        model.release(alive=name)
        model.skip()
        process.batch = batch = opening()
        for s, driver in self.drivers.items():
            if s in model.cuts and (cut := self.position(s)) != model.cuts[s]:
                model.pass_ends(s, cut)
            if batch is not None and process.until is not None and s in process.until:
                self._stops(driver, batch, _cut(process.until[s]))
        if batch is None:
            return False
        assert 0 < batch.events == sum(bound.end - bound.start for bound in batch.bounds)
        model.opened(batch.batch_id, batch.bounds, name)
        self._is(batch, batch.batch_id, model.batches[batch.batch_id])
        self._read(process)
        return True

    def _is(self, batch: Batch | None, batch_id: int, wanted: ModelBatch) -> None:
        assert batch is not None
        assert (batch.batch_id, batch.bounds) == (batch_id, wanted.bounds)
        assert (batch.token, batch.attempt) == (wanted.token, wanted.attempt)

    def _stops(self, driver: Driver, batch: Batch, until: Cut) -> None:
        """Check that nothing of a batch lies after the cut at which its reader should stop."""
        left = driver.model.unpassed(until)
        for bound in batch.bounds:
            if bound.stream_id == driver.lane.stream_id and bound.segment_id in left:
                assert bound.start == bound.end or bound.end <= (until.get(bound.segment_id) or 0)

    def _read(self, process: Process) -> None:
        """Read what the files hold between the bounds of a batch, as far as they are there."""
        assert process.batch is not None
        process.read, process.lost = {}, {}
        for s, driver in self.drivers.items():
            files = {file.path: file.events for file in driver.model.files}
            bounds = [
                (b.segment_id, b.start, b.end)
                for b in process.batch.bounds
                if b.stream_id == s and b.end > b.start
            ]
            slices = self.database.transaction(
                partial(slices_of_bounds, stream_id=s, bounds=bounds)
            )
            process.read[s] = [
                event for one in slices for event in files[one.path][one.first_row : one.end_row]
            ]
            lost = sum(end - start for _, start, end in bounds) - len(process.read[s])
            if lost:
                process.lost[s] = lost

    def write(self, process: Process) -> None:
        """Write the results, which nobody sees yet."""
        batch = process.batch
        assert batch is not None
        held = self.model.open.get(batch.batch_id)
        output = _output(batch)
        if held is not None and held.token == batch.token:
            record_output(self.database, batch, output)
            self.written.add(output["path"])
            process.staged = self.out.stage(process)
        elif held is not None:
            for work in (
                partial(self.out.stage, process),
                partial(record_output, self.database, batch, output),
            ):
                with pytest.raises(Fenced):
                    work()

    def split(self, process: Process) -> None:
        """Split the batch of a process, as if it had failed, if it has two halves and the process
        may."""
        batch = process.batch
        assert batch is not None
        if batch.events < 2:
            return
        known = self.model.batches[batch.batch_id]
        splitting = partial(split_batch, self.database, batch, "it failed")
        if known.state == "abandoned" or known.token != batch.token:
            with pytest.raises(Fenced):
                splitting()
            return
        for _ in range(2):  # ask again, as if the answer was lost
            splitting()
        if known.state == "open":
            self.model.split(batch.batch_id, *halve(batch.bounds))

    def commit(self, process: Process) -> None:
        """Commit what was read and written, whether or not it is allowed to."""
        batch, model = process.batch, self.model
        assert batch is not None
        output = _output(batch)
        staged = [process.staged] if process.staged is not None else []
        committing = partial(
            process.reader.commit, batch, staged, outputs=[output], lost=process.lost
        )
        known = model.batches[batch.batch_id]
        if known.state in ("abandoned", "split") or known.token != batch.token:
            with pytest.raises(Fenced):
                committing()
            return
        committing()
        if known.state == "open":
            model.commit(batch.batch_id, process.read, process.lost)
            self.folders[batch.batch_id] = output["path"]
            if process.staged is not None:
                self.out.expected += [e for events in process.read.values() for e in events]

    def finish(self, name: str) -> None:
        """Let one reader read all that is there."""
        random = Random(0)
        while self.open(name, random.choice([2, 7, 1_000])):
            self.write(self.processes[name])
            self.commit(self.processes[name])

    def go_on_over_gaps(self) -> None:
        update_reader_group(
            self.database, self.group.name, on_gap="skip", request_id=unique("update")
        )
        self.model.generation += 1

    # What must hold.

    def everything(self) -> dict[str, list[dict[str, Any]]]:
        """Return all that is known about the group: rows by table."""
        rows = self.group.rows(
            " UNION ALL ".join(
                f"SELECT '{table}' AS place, to_jsonb(t) AS row FROM {table} t WHERE group_id = :g"
                for table in TABLES
            )
        )
        return {
            table: [one.row for one in sorted(rows, key=str) if one.place == table]
            for table in TABLES
        }

    def position(self, stream_id: int) -> Cut:
        return _cut(self.group.cut(self.lane(stream_id)))

    def check(self) -> None:
        """Check that the database says the same as the model, and that all is well there."""
        model, known = self.model, self.everything()
        model.check()
        positions: Cuts = {s: {} for s in model.cuts}
        for row in known["reader_group_segment"]:
            positions[row["stream_id"]][row["segment_id"]] = row["next_offset"]
        assert positions == model.cuts
        streams = {row["stream_id"]: row for row in known["reader_group_stream"]}
        assert {s: row["lost_events"] for s, row in streams.items()} == model.lost
        released = {s: row["released_cut"] for s, row in streams.items() if row["released_cut"]}
        assert released == {s: as_json(cut) for s, cut in model.released.items()}
        for s, cut in model.released.items():
            assert model.streams[s].behind(cut, model.cuts[s]), "it releases what is unread"
        assert {row["reader_id"]: row["token"] for row in known["reader"]} == {
            name: reader.token for name, reader in model.readers.items()
        }
        assert {
            row["batch_id"]: (row["state"], row["reader_id"], row["token"], row["attempt"])
            for row in known["reader_batch"]
        } == {i: (b.state, b.reader, b.token, b.attempt) for i, b in model.batches.items()}
        assert {row["name"]: (row["state"], row["cuts"]) for row in known["checkpoint"]} == {
            name: (one.state, {str(s): as_json(cut) for s, cut in one.cuts.items()})
            for name, one in model.checkpoints.items()
        }
        self._check_held(known["reader_group_segment"])

    def _check_held(self, rows: list[dict[str, Any]]) -> None:
        """Check that each segment at which an open batch began belongs to the batch's reader, and
        that `held_segments` names the batch."""
        owners = {
            (r["stream_id"], r["segment_id"]): r["reader_id"]
            for r in rows
            if r["state"] != "future"
        }
        wanted = {
            (b.stream_id, b.segment_id): i
            for i, batch in self.model.open.items()
            for b in batch.held
        }
        held = self.group.rows("SELECT * FROM held_segments(:g)")
        assert wanted == {(h.stream_id, h.segment_id): h.batch_id for h in held}
        for key in wanted.keys() & owners.keys():
            assert owners[key] == self.model.batches[wanted[key]].reader

    def check_outputs(self) -> None:
        """Check that the attempts that count are those that committed, and that all others are
        known to be garbage."""
        found = committed_folders(self.database, self.group.name, OUTPUT)
        assert found == [*self.folders.values()], "in the order of the commits"
        fenced = self.group.rows(
            "SELECT path FROM garbage WHERE root = :root AND path LIKE 'x/batch=' || :g || '.%'",
            root=ROOT,
        )
        assert {row.path for row in fenced} == self.written - {*self.folders.values()}

    def check_fair(self, *names: str) -> None:
        """Check that readers who come to what is all read share its segments evenly."""
        self.leaves("last")
        for name in names:
            self.join(name)
        for name in names:
            assert not self.open(name, 1_000)
        shares = [
            sum(len(self.group.owned(n, self.lane(s))) for s in self.model.cuts) for n in names
        ]
        assert max(shares) - min(shares) <= 1


def _output(batch: Batch) -> dict[str, Any]:
    path = f"x/batch={batch.identity}/attempt={batch.attempt}/"
    return {"kind": "parquet", "output": OUTPUT, "root": ROOT, "path": path}


def _cut(written: Mapping[str, Any]) -> Cut:
    return {parse_segment_name(n): None if o == "future" else o for n, o in written.items()}


def group_of(
    drivers: list[Driver], cuts: Cuts, out: Out, *, on_gap: str, subscriber: bool
) -> GroupDriver:
    """Return a new group that starts at the heads, and its model."""
    lanes = [driver.lane for driver in drivers]
    group = Group.made(*lanes, on_gap=on_gap, subscriber=subscriber)
    return GroupDriver(group, drivers, cuts, out, on_gap=on_gap, subscriber=subscriber)
