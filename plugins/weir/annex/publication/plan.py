"""Which streams are to be published, and how each differs from what is published of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from weir.annex.publication import columns
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.queries.annex.publication import plan as sql
from weir.queries.annex.publication.plan import Due, File


@dataclass(frozen=True)
class Plan:
    """A stream as it was at one moment, beside what is published of it."""

    number: int  # of the last publication; 0: there was none
    sequence: int
    root: str | None
    metadata: str | None
    cut: dict[str, Any]
    clock: int
    head: dict[str, Any]
    events: int
    rows: int  # from head to tail
    files: int  # that the newest snapshot has
    compacted: int
    schema_version: int
    published_version: int | None
    versions: list[list[Field]]  # of the columns, the newest last; none: there are no columns yet
    added: list[File]
    removed: dict[str, list[str]]  # by manifest
    masked: dict[str, int]  # rows to leave out at the beginning of files that straddle the head
    published_masked: dict[str, int]
    truncates: bool  # some of what is removed was truncated, so older snapshots go at once
    expires: int  # snapshots below this sequence number name what must go, too

    @property
    def makes_snapshot(self) -> bool:
        """Whether the table is to change."""
        return bool(
            self.metadata is None or self.added or self.removed
            or self.masked != self.published_masked
            or self.schema_version != self.published_version
        )  # fmt: skip


def due(connection: Connection, names: Sequence[StreamName] | None) -> list[Due]:
    """Return the streams to publish, and those whose publication is to end. `names`: of these;
    None: of all."""
    return sql.due(connection, names=None if names is None else [str(name) for name in names])


def plan(connection: Connection, stream_id: int, graces: tuple[float, float]) -> Plan:
    """Compare a stream with what is published of it. Call it in a snapshot.

    The cost grows with what is new, unless the head has moved or files were compacted: then all
    files are compared. `graces`: the settings `grace_period` and `compacted_grace`.
    """
    row = sql.state(connection, stream_id=stream_id)
    same = row.metadata and row.head == row.published_head
    removed: dict[str, list[str]] = {}
    if same and row.compacted == row.published_compacted:
        since, until = json.dumps(row.published_cut), json.dumps(row.cut)
        added = sql.appended(connection, stream_id=stream_id, since=since, until=until)
    else:
        added = sql.unpublished(connection, stream_id=stream_id)
        for file in sql.gone(connection, stream_id=stream_id):
            removed.setdefault(file.manifest, []).append(file.path)
    masked = {file.path: file.rows for file in sql.masked(connection, stream_id=stream_id)}
    gone = [path for some in removed.values() for path in some]
    return Plan(
        row.number, row.sequence, row.root, row.metadata, row.cut, row.clock, row.head, row.events,
        row.rows, row.files, row.compacted, row.schema_version, row.published_version,
        _versions(connection, stream_id, row.stream_name), added, removed,
        masked, row.published_masked, bool(gone) and sql.truncated(connection, paths=gone),
        sql.expires(connection, stream_id=stream_id, grace=graces[0], compacted=graces[1]),
    )  # fmt: skip


def _versions(connection: Connection, stream_id: int, stream: str) -> list[list[Field]]:
    """Return the versions of the columns, the newest last. Raises InvalidInput if there are files
    of an older one that readers would take for something else."""
    versions = sql.versions(connection, stream_id=stream_id)
    unlike = {
        version: found
        for version, *found in reversed(
            columns.unlike([(row.version, row.fields) for row in versions])
        )
    }
    if unlike:
        first = sql.oldest_used(connection, stream_id=stream_id, versions=list(unlike))
        if first is not None:
            raise columns.not_publishable(stream, *unlike[first])
    return [row.fields for row in versions]
