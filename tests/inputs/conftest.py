"""Files that are appended, and what the stream has of them, without a JVM."""

from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from weir.arrow.ingest import stage_files
from weir.arrow.read import read_table
from weir.controller.streams import create_stream
from weir.controller.transactions import Committed
from weir.database.connection import Database
from weir.inputs.append import FilesOf, append_files
from weir.inputs.files import find_inputs
from weir.installation.opened import Installation
from weir.kernel.text_options import TextOptions
from weir.model.names import StreamName, stream_name
from weir.model.schema import PLACES
from weir.settings import Settings

_ids = count()


@dataclass
class Files:
    """An installation and its input root. What it says is kept in `said`."""

    settings: Settings
    database: Database
    said: list[str] = field(default_factory=list)

    @property
    def app(self) -> Installation:
        return Installation(self.settings, self.database, "test", self.said.append)

    @property
    def root(self) -> Path:
        return Path(self.settings.input_roots[0])

    def query(self, sql: str, **given: Any) -> list[Any]:
        """The rows of a query."""
        rows = self.database.transaction(lambda c: c.execute(text(sql), given).all())
        return [tuple(row) for row in rows]

    def value(self, sql: str, **given: Any) -> Any:
        """The one value of a query."""
        [(value,)] = self.query(sql, **given)
        return value

    def create(self, name: str = "s/events", key: str = "k", **options: Any) -> StreamName:
        """A new stream of one segment."""
        stream, given = stream_name(name), {"segments": 1, **options}
        create_stream(
            self.database, stream, routing_key=key, request_id=f"create {next(_ids)}", **given
        )
        return stream

    def put(self, name: str, content: str | bytes | dict[str, Any] | pa.Table) -> str:
        """A file below the input root; columns become a Parquet file."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, str | bytes):
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        else:
            pq.write_table(pa.table(content) if isinstance(content, dict) else content, path)
        return name

    def ingest(
        self, stream: StreamName, *paths: str, again: str = "",
        rename: dict[str, str] | None = None, **options: Any,
    ) -> Committed:  # fmt: skip
        """Append files, whose endings say their format."""
        how, roots = TextOptions(**options), self.settings.input_roots
        inputs = find_inputs(list(paths), roots, "auto", how, rename=rename)
        stage = partial(stage_files, self.app)
        return append_files(self.app, FilesOf(stream, inputs, again=again), stage)

    def table(self, stream: StreamName) -> pa.Table:
        """The events in write order, without their places."""
        return read_table(self.app, str(stream), order="stream").drop_columns(list(PLACES))

    def events(self, stream: StreamName) -> list[tuple[Any, ...]]:
        """The same as tuples."""
        return [tuple(row.values()) for row in self.table(stream).to_pylist()]

    def rejected(self, stream: StreamName, *columns: str) -> list[tuple[Any, ...]]:
        """Columns of the rejected rows of a stream, in write order."""
        rows = self.table(stream.rejected).select(list(columns)).to_pylist()
        return [tuple(row.values()) for row in rows]


@pytest.fixture
def files(settings: Settings, database: Database) -> Files:
    """An empty installation."""
    return Files(settings, database)
