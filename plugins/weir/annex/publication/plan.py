"""Which streams are to be published, and how each differs from what is published of it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.annex.publication import columns
from weir.model.names import StreamName
from weir.model.schema import Field


class Due(NamedTuple):
    """A stream that is to be published, or whose publication is to be ended."""

    stream_id: int
    stream: str
    wanted: bool


class File(NamedTuple):
    """A data file of a stream."""

    segment_id: int
    start_offset: int
    path: str
    events: int
    bytes: int


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
    rows = connection.execute(
        text(
            """SELECT s.stream_id, s.stream_name, s.publish <> 'none'
            FROM stream s WHERE s.state <> 'deleted' AND s.publish <> 'none'
                AND (CAST(:names AS text[]) IS NULL OR s.stream_name = ANY (:names))
            UNION ALL
            SELECT s.stream_id, s.stream_name, false
            FROM publication p JOIN stream s USING (stream_id) WHERE s.publish = 'none'
                AND (CAST(:names AS text[]) IS NULL OR s.stream_name = ANY (:names))
            ORDER BY 2"""
        ),
        {"names": None if names is None else [str(name) for name in names]},
    )
    return [Due(*row) for row in rows]


def plan(connection: Connection, stream_id: int, graces: tuple[float, float]) -> Plan:
    """Compare a stream with what is published of it. Call it in a snapshot.

    The cost grows with what is new, unless the head has moved or files were compacted: then all
    files are compared. `graces`: the settings `grace_period` and `compacted_grace`.
    """
    row = connection.execute(
        text(
            """SELECT coalesce(p.number, 0) AS number, coalesce(p.sequence, 0) AS sequence, p.root,
                p.metadata, tail_cut(s.stream_id) AS cut, s.last_clock AS clock, s.head,
                p.cut AS published_cut, p.head AS published_head, coalesce(p.files, 0) AS files,
                t.events, t.events - h.events AS rows,
                coalesce(p.compacted, 0) AS published_compacted,
                coalesce((SELECT max(c.number) FROM compaction c
                          WHERE c.stream_id = s.stream_id AND c.state = 'done'), 0) AS compacted,
                s.schema_version, p.schema_version AS published_version, s.stream_name,
                coalesce(p.masked, '{}') AS published_masked
            FROM stream s LEFT JOIN publication p USING (stream_id)
            CROSS JOIN LATERAL size_till(s.stream_id, tail_cut(s.stream_id)) t
            CROSS JOIN LATERAL size_till(s.stream_id, s.head) h WHERE s.stream_id = :s"""
        ),
        {"s": stream_id},
    ).one()
    same = row.metadata and row.head == row.published_head
    same = same and row.compacted == row.published_compacted
    added, removed = (
        (_appended(connection, stream_id, row.published_cut, row.cut), {})
        if same
        else _differences(connection, stream_id)
    )
    return Plan(
        row.number, row.sequence, row.root, row.metadata, row.cut, row.clock, row.head, row.events,
        row.rows, row.files, row.compacted, row.schema_version, row.published_version,
        _versions(connection, stream_id, row.stream_name), added, removed,
        _masked(connection, stream_id), row.published_masked, _truncated(connection, removed),
        _expires(connection, stream_id, graces),
    )  # fmt: skip


def _appended(
    connection: Connection, stream_id: int, since: dict[str, Any], until: dict[str, Any]
) -> list[File]:
    rows = connection.execute(
        text(
            """SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased, f.bytes
            FROM segments_between(:s, CAST(:since AS jsonb), CAST(:until AS jsonb)) b
            CROSS JOIN LATERAL (
                SELECT * FROM data_file d WHERE d.stream_id = :s AND d.segment_id = b.segment_id
                AND d.start_offset >= b.from_offset AND d.start_offset < b.to_offset OFFSET 0) f
            ORDER BY f.segment_id, f.start_offset"""
        ),
        {"s": stream_id, "since": json.dumps(since), "until": json.dumps(until)},
    )
    return [File(*row) for row in rows]


def _differences(connection: Connection, stream_id: int) -> tuple[list[File], dict[str, list[str]]]:
    """Return the files that are not published, and those that are and are not the stream's any
    more, by manifest."""
    added = connection.execute(
        text(
            """SELECT f.segment_id, f.start_offset, f.path, f.events - f.erased, f.bytes
            FROM data_file f
            LEFT JOIN published_file p ON p.stream_id = f.stream_id AND p.path = f.path
            WHERE f.stream_id = :s AND p.path IS NULL ORDER BY f.segment_id, f.start_offset"""
        ),
        {"s": stream_id},
    )
    removed: dict[str, list[str]] = {}
    for row in connection.execute(
        text(
            """SELECT p.manifest, p.path FROM published_file p
            LEFT JOIN data_file f ON f.stream_id = p.stream_id AND f.path = p.path
            WHERE p.stream_id = :s AND p.manifest IS NOT NULL AND p.until IS NULL
                AND f.path IS NULL ORDER BY p.manifest, p.path"""
        ),
        {"s": stream_id},
    ):
        removed.setdefault(row.manifest, []).append(row.path)
    return [File(*row) for row in added], removed


def _masked(connection: Connection, stream_id: int) -> dict[str, int]:
    """Return how many rows of each file that straddles the head lie below it."""
    rows = connection.execute(
        text(
            """SELECT f.path, h.event_offset - f.start_offset - CASE WHEN f.erased = 0 THEN 0
                ELSE holes_in(:s, f.segment_id, f.start_offset, h.event_offset) END AS rows
            FROM stream s CROSS JOIN LATERAL cut_entries(s.head) h
            CROSS JOIN LATERAL (
                SELECT * FROM data_file d WHERE d.stream_id = :s AND d.segment_id = h.segment_id
                AND d.start_offset < h.event_offset ORDER BY d.start_offset DESC LIMIT 1) f
            WHERE s.stream_id = :s AND f.start_offset + f.events > h.event_offset"""
        ),
        {"s": stream_id},
    )
    return {row.path: row.rows for row in rows}


def _versions(connection: Connection, stream_id: int, stream: str) -> list[list[Field]]:
    """Return the versions of the columns, the newest last. Raises InvalidInput if there are files
    of an older one that readers would take for something else."""
    versions = connection.execute(
        text("SELECT version, fields FROM stream_schema WHERE stream_id = :s ORDER BY version"),
        {"s": stream_id},
    ).all()
    unlike = {
        version: found for version, *found in reversed(columns.unlike([*map(tuple, versions)]))
    }
    if unlike:
        used = connection.execute(
            text(
                """SELECT DISTINCT schema_version FROM data_file
                WHERE stream_id = :s AND schema_version = ANY (:versions)"""
            ),
            {"s": stream_id, "versions": list(unlike)},
        ).scalars()
        if (first := min(used, default=None)) is not None:
            raise columns.not_publishable(stream, *unlike[first])
    return [row.fields for row in versions]


def _expires(connection: Connection, stream_id: int, graces: tuple[float, float]) -> int:
    """Return the sequence number below which snapshots must go, because they name files that a
    sweep is to delete: what was truncated at once, what was compacted before its time is over."""
    found = connection.execute(
        text(
            """SELECT max(p.until) FROM published_file p
            LEFT JOIN garbage g ON g.root = '' AND g.path = p.path
            WHERE p.stream_id = :s AND p.until IS NOT NULL AND p.manifest IS NOT NULL
                AND (g.reason IS DISTINCT FROM 'compacted' OR g.garbage_since < clock_timestamp()
                     - greatest(:compacted - :grace, 0) * interval '1 second')"""
        ),
        {"s": stream_id, "grace": graces[0], "compacted": graces[1]},
    ).scalar_one()
    return int(found or 0)


def _truncated(connection: Connection, removed: dict[str, list[str]]) -> bool:
    """Return whether one of the files that are not the stream's any more was not compacted."""
    paths = [path for some in removed.values() for path in some]
    return bool(paths) and bool(
        connection.execute(
            text(
                """SELECT EXISTS (SELECT FROM unnest(CAST(:paths AS text[])) AS r (path)
                LEFT JOIN garbage g ON g.root = '' AND g.path = r.path
                WHERE g.reason IS DISTINCT FROM 'compacted')"""
            ),
            {"paths": paths},
        ).scalar_one()
    )
