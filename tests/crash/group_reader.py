"""A reader of a group without a JVM, and what must have become of all that such readers did.

It writes what it reads to a stream and to a table, in the transaction of the positions; to Parquet,
of which the record names the attempt that counts; and to a file named after its batch, which every
attempt writes with the same bytes.
"""

import csv
import io
import itertools
import json
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.committed_folders import committed_folders
from tests.crash.jobs import execute
from tests.world.groups import budget as only_events
from tests.world.groups import open_batch
from tests.world.streams import rows
from weir.arrow.read import read_slice
from weir.controller.read_plan import plan_of_bounds
from weir.controller.transactions import begin
from weir.database.background import KeepAlive
from weir.database.connection import Database, copy_in
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.writer import stage_table
from weir.model.names import StreamName
from weir.programs.opening import shared
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.group_streams import group_streams
from weir.reader_groups.groups.readers import join, renew
from weir.reader_groups.outputs.records import record_output, write_manifest
from weir.reader_groups.outputs.tables import StagedTable, make_staging, read_table
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem

FOLDER = "copies"
TABLE = "public.results"
COLUMNS = ["key", "n"]
Moment = Callable[[str], None]


@dataclass
class GroupReader:
    """One reader; `moment` is told what it has just done."""

    settings: Settings
    database: Database
    group: str
    name: str
    out: StreamName
    moment: Moment = lambda what: None
    token: int = field(default=0, init=False)

    def join(self) -> None:
        self.token = join(self.database, self.group, self.name, self.lease)

    @property
    def lease(self) -> float:
        return self.settings.reader_lease

    def alive(self) -> KeepAlive:
        """Return a context in which the reader's lease is renewed."""
        return self.database.keep_alive(
            lambda c: renew(c, self.group, self.name, self.token, self.lease), every=self.lease / 3
        )

    def read_batch(self, budget: int, expected: int = 1) -> Batch | None:
        """Open a batch, write its events everywhere, and commit it. Return the batch, if there is
        one."""
        batch = open_batch(
            self.database, self.group, self.name, self.token, lease=self.lease,
            budget=only_events(budget), expected_readers=expected,
        )  # fmt: skip
        if batch is None:
            return None
        self.moment("opened")
        events = self.events(batch)
        self.moment("read")
        output = self._write_parquet(batch, events)
        self._write_file(batch, events)
        self.moment("wrote files")
        staged = self._stage(batch, events)
        copied = self._copy(batch, events)
        self.moment("staged")
        commit_batch(
            self.database, batch, lease=self.lease, staged=[staged], tables=[copied],
            outputs=[output],
        )  # fmt: skip
        self.moment("committed")
        write_manifest(self.database, self.group, FOLDER, self._root, FOLDER)
        self.moment("wrote the manifest")
        return batch

    @property
    def _root(self) -> str:
        return self.settings.output_roots[0]

    def events(self, batch: Batch) -> pa.Table:
        """Return the events between the bounds of a batch."""
        parts = [pa.table({"key": pa.array([], pa.string()), "n": pa.array([], pa.int64())})]
        streams = self.database.transaction(lambda c: group_streams(c, self.group))
        for stream_id in [stream.stream_id for stream in streams]:
            bounds = [
                (b.segment_id, b.start, b.end) for b in batch.bounds if b.stream_id == stream_id
            ]
            slices, fields = self.database.transaction(
                partial(plan_of_bounds, stream_id=stream_id, bounds=bounds)
            )
            for part in slices:
                rows = read_slice(self.settings, part, fields, COLUMNS)
                parts.append(rows.select(COLUMNS))
        events = pa.concat_tables(parts)
        assert events.num_rows == batch.events
        return events

    def _write_parquet(self, batch: Batch, events: pa.Table) -> dict[str, Any]:
        folder = f"{FOLDER}/group={self.group}/batch={batch.identity}/attempt={batch.attempt}/"
        output = {"kind": "parquet", "output": FOLDER, "root": self._root, "path": folder}
        record_output(self.database, batch, output)
        system, base = filesystem(self._root)
        system.create_dir(f"{base}/{folder}", recursive=True)
        with system.open_output_stream(f"{base}/{folder}part.parquet") as out:
            pq.write_table(events, out)
        return output

    def _write_file(self, batch: Batch, events: pa.Table) -> None:
        """Write the events to a file, whole or not at all. It is the same, whoever writes it."""
        system, base = filesystem(self._root)
        target = f"{base}/files/{batch.identity}.json"
        new = f"{target}.{uuid.uuid4().hex}"
        system.create_dir(f"{base}/files", recursive=True)
        with system.open_output_stream(new) as out:
            out.write(json.dumps(events.to_pylist()).encode())
        system.move(new, target)

    def _stage(self, batch: Batch, events: pa.Table) -> Staged:
        attempt = begin(
            self.database, self.out, writer_id=f"group {self.group}",
            batch_id=batch.identity, fingerprint="", source=self.name,
            lease=self.settings.transaction_lease, guard=partial(check_held, batch=batch),
        )  # fmt: skip
        assert isinstance(attempt, Attempt), "its output is there, but not its position"
        return stage_table(self.settings.warehouse, attempt, events)

    def _copy(self, batch: Batch, events: pa.Table) -> StagedTable:
        columns = self.database.transaction(lambda c: read_table(c, TABLE))
        staging, statement = make_staging(self.database, batch, 0, columns)
        copied = io.StringIO()
        csv.writer(copied).writerows(
            [self.group, event["key"], event["n"]] for event in events.to_pylist()
        )
        encoded = io.BytesIO(copied.getvalue().encode())
        piece = self.database.transaction(lambda c: copy_in(c, statement, encoded))
        return StagedTable(TABLE, staging, (piece,), events.num_rows)


def make_table(owner_dsn: str) -> None:
    """Create the table for results, as its owner does."""
    execute(
        owner_dsn,
        f"""CREATE TABLE {TABLE} (reader_group text, key text, n bigint);
        GRANT SELECT, INSERT ON {TABLE} TO weir_jobs, weir_publisher""",
    )


def append_numbers(settings: Settings, stream: str, numbers: Iterable[int], keys: int) -> None:
    """Append an event for each number. Those of a key are appended in their order."""
    numbers = list(numbers)
    table = pa.table({"key": [f"key {n % keys}" for n in numbers], "n": numbers})
    shared(settings).append(stream, table, writer_id="test", batch_id=f"from {numbers[0]}")


def check_exactly_once(
    database: Database, settings: Settings, group: str, out: StreamName, total: int
) -> None:
    """Check that every event is once in every sink, those of a key in their order."""
    root = Path(settings.output_roots[0])
    folders = committed_folders(database, group, FOLDER)
    manifest = json.loads((root / FOLDER / f"group={group}/_manifest.json").read_text())
    assert manifest["folders"] == folders
    found = rows(database, f"SELECT n FROM {TABLE} WHERE reader_group = :g ORDER BY n", g=group)
    assert [row.n for row in found] == list(range(total)), "the table"
    parts = [pq.ParquetFile(root / folder / "part.parquet").read() for folder in folders]
    files = [f"{root}/files/{folder.split('batch=')[1].split('/')[0]}.json" for folder in folders]
    sinks = {
        "the stream": shared(settings).read(str(out), order="stream").to_pylist(),
        "Parquet": pa.concat_tables(parts).to_pylist(),
        "files": list(itertools.chain(*(json.loads(Path(file).read_text()) for file in files))),
    }
    for where, events in sinks.items():
        assert sorted(event["n"] for event in events) == list(range(total)), where
        last: dict[str, int] = {}
        for event in events:
            assert event["n"] > last.get(event["key"], -1), f"not in order in {where}"
            last[event["key"]] = event["n"]
