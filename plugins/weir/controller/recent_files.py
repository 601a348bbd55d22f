"""Which files have the recent events of parts of the key space. One statement for all streams."""

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.model.names import StreamName, stream_name
from weir.model.schema import Field


class Part(NamedTuple):
    """A range of the keys of a stream. Its recent events are those with a clock after `since`."""

    stream_id: int
    key_low: float
    key_high: float
    since: int


class RecentFile(NamedTuple):
    """A file with recent events of a segment that shares keys with a part.

    `events`, `bytes`: of what is recent in it. `since`: if only a part of a file of several commits
    is: what has a later clock."""

    path: str  # below the warehouse
    segment_id: int
    key_low: float
    key_high: float
    events: int
    bytes: int
    first_seq: int
    since: int | None


class RecentFiles(NamedTuple):
    """The files of a stream, and what it takes to compute its routing key from them."""

    stream_id: int
    stream: StreamName
    routing_key: str
    on_missing_key: str
    fields: list[Field]
    files: tuple[RecentFile, ...]


def recent_files(connection: Connection, parts: Iterable[Part]) -> list[RecentFiles]:
    """Return the files with recent events of parts of streams, for each stream that has any.

    A segment that shares keys with a part may be older than those that are active now: a
    predecessor, the original of a copy that a roll made, or the segment of a transaction that began
    before a split. If the parts of a stream have several times, the earliest holds for all of them.
    """
    rows = connection.execute(
        text(
            """WITH part AS (
                SELECT * FROM jsonb_to_recordset(CAST(:parts AS jsonb))
                    AS p (stream_id bigint, key_low float8, key_high float8, since bigint)),
            recent AS MATERIALIZED (
                SELECT p.stream_id, i.segment_id, p.since, min(i.start_offset) AS first,
                    max(i.start_offset + i.events) AS past
                FROM (SELECT stream_id, min(since) AS since FROM part GROUP BY stream_id) p
                CROSS JOIN LATERAL
                    commits_between(p.stream_id, p.since + 1, 9223372036854775807) i
                GROUP BY p.stream_id, i.segment_id, p.since),
            touched AS (
                SELECT r.*, s.key_low, s.key_high
                FROM recent r JOIN segment s USING (stream_id, segment_id)
                WHERE EXISTS (SELECT FROM part p WHERE p.stream_id = r.stream_id
                    AND p.key_low < s.key_high AND s.key_low < p.key_high)),
            found AS (
                SELECT t.stream_id, jsonb_agg(jsonb_build_array(f.path, f.segment_id, t.key_low,
                    t.key_high, r.events, (f.bytes * r.events / f.events)::bigint, f.first_seq,
                    CASE WHEN r.events < f.events THEN t.since END)
                    ORDER BY f.segment_id, f.start_offset) AS files
                FROM touched t CROSS JOIN LATERAL (
                    SELECT * FROM data_file d
                    WHERE d.stream_id = t.stream_id AND d.segment_id = t.segment_id
                      AND d.start_offset < t.past AND d.start_offset >= coalesce((
                          SELECT max(n.start_offset) FROM data_file n
                          WHERE n.stream_id = t.stream_id AND n.segment_id = t.segment_id
                            AND n.start_offset <= t.first), 0)) f
                CROSS JOIN LATERAL (SELECT f.start_offset + f.events
                    - greatest(f.start_offset, t.first) AS events) r
                GROUP BY t.stream_id)
            SELECT stream_id, stream_name, routing_key, on_missing_key, (
                SELECT c.fields FROM stream_schema c WHERE c.stream_id = s.stream_id
                ORDER BY c.version DESC LIMIT 1) AS fields, f.files
            FROM found f JOIN stream s USING (stream_id) ORDER BY stream_id"""
        ),
        {"parts": json.dumps([part._asdict() for part in parts])},
    )
    return [_of_row(*row) for row in rows]


def _of_row(
    stream_id: int, name: str, key: str, missing: str, fields: list[Field] | None, files: list[Any]
) -> RecentFiles:
    found = tuple(RecentFile(*file) for file in files)
    return RecentFiles(stream_id, stream_name(name), key, missing, list(fields or []), found)
