"""Which streams are to be published, and how each differs from what is published of it."""

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.annex.publication import columns
from weir.model.schema import Field
from weir.queries.annex.publication import plan as sql


@dataclass(frozen=True)
class Plan:
    """A stream as it was at one moment, beside what is published of it."""

    state: sql.State
    versions: list[list[Field]]  # of the columns, the newest last; none: there are no columns yet
    added: list[sql.File]
    removed: Mapping[str, list[str]]  # by manifest
    masked: dict[str, int]  # rows to leave out at the beginning of files that straddle the head
    truncates: bool  # some of what is removed was truncated, so older snapshots go at once
    expires: int  # snapshots below this sequence number name what must go, too

    @property
    def makes_snapshot(self) -> bool:
        """Whether the table is to change."""
        return bool(
            self.state.metadata is None or self.added or self.removed
            or self.masked != self.state.published_masked
            or self.state.schema_version != self.state.published_version
        )  # fmt: skip


def plan(connection: Connection, stream_id: int, graces: tuple[float, float]) -> Plan:
    """Compare a stream with what is published of it. Call it in a snapshot.

    The cost grows with what is new, unless the head has moved or files were compacted: then all
    files are compared. `graces`: the settings `grace_period` and `compacted_grace`.
    """
    state = sql.state(connection, stream_id=stream_id)
    removed = defaultdict[str, list[str]](list)
    if (
        state.metadata and state.head == state.published_head
        and state.compacted == state.published_compacted
    ):  # fmt: skip
        since, until = json.dumps(state.published_cut), json.dumps(state.cut)
        added = sql.appended(connection, stream_id=stream_id, since=since, until=until)
    else:
        added = sql.unpublished(connection, stream_id=stream_id)
        for row in sql.removed(connection, stream_id=stream_id):
            removed[row.manifest].append(row.path)
    versions = _versions(connection, stream_id, state.stream_name)
    masked = {row.path: row.rows for row in sql.masked(connection, stream_id=stream_id)}
    paths = [path for some in removed.values() for path in some]
    truncates = bool(paths) and sql.truncated(connection, paths=paths)
    grace, compacted = graces
    expires = sql.expires(connection, stream_id=stream_id, grace=grace, compacted=compacted)
    return Plan(state, versions, added, removed, masked, truncates, expires)


def _versions(connection: Connection, stream_id: int, stream: str) -> list[list[Field]]:
    """Return the versions of the columns, the newest last. Raises InvalidInput if there are files
    of an older one that readers would take for something else."""
    versions = sql.versions(connection, stream_id=stream_id)
    unlike = {version: found for version, *found in reversed(columns.unlike(versions))}
    if unlike:
        used = sql.used_versions(connection, stream_id=stream_id, versions=[*unlike])
        if used:
            raise columns.not_publishable(stream, *unlike[min(used)])
    return [one.fields for one in versions]
