"""The damage that was found, recorded until it is seen to be right again."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

# By what finds them: each look at a file, a look at its contents, the database, a list of files.
OF_FILES = ("missing", "size", "unreadable", "end", "rows", "commits")
OF_CONTENTS = ("content", "order", "segment", "bytes", "holes")
OF_OFFSETS = ("offsets",)
OF_LISTS = ("unknown", "renamed")


class Damage(NamedTuple):
    """Something that is not as recorded. `what` is a phrase for people."""

    kind: str
    path: str
    what: str
    segment_id: int | None = None
    start_offset: int | None = None
    events: int | None = None


def record(
    connection: Connection,
    stream_id: int | None,
    found: Sequence[Damage],
    *,
    looked_at: Collection[str] | None,
    kinds: Iterable[str],
) -> list[Damage]:
    """Record damage of a stream (None: of no stream), and delete what was found earlier of the
    `kinds` in the files that were looked at (None: all) and is right again. Return it without that
    of files that the stream no longer has."""
    given = {
        "s": stream_id, "kinds": list(kinds),
        "looked_at": None if looked_at is None else list(looked_at),
        "path": [one.path for one in found], "kind": [one.kind for one in found],
        "what": [one.what for one in found], "segment": [one.segment_id for one in found],
        "offset": [one.start_offset for one in found], "events": [one.events for one in found],
    }  # fmt: skip
    connection.execute(_FORGET, given)
    kept = {(row.path, row.kind) for row in connection.execute(_RECORD, given)}
    return [one for one in found if (one.path, one.kind) in kept]


_FORGET = text(
    """DELETE FROM found_damage d WHERE d.stream_id IS NOT DISTINCT FROM :s
      AND (d.kind = ANY(CAST(:kinds AS text[]))
           AND (CAST(:looked_at AS text[]) IS NULL OR d.path = ANY(CAST(:looked_at AS text[])))
           AND NOT EXISTS (
               SELECT FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[])) AS f (path, kind)
               WHERE f.path = d.path AND f.kind = d.kind)
           OR d.segment_id IS NOT NULL AND NOT EXISTS (
               SELECT FROM data_file f WHERE f.stream_id = d.stream_id
                 AND f.segment_id = d.segment_id AND f.start_offset = d.start_offset
                 AND f.path = d.path))"""
)
_RECORD = text(
    """WITH found AS (
        SELECT * FROM unnest(CAST(:path AS text[]), CAST(:kind AS text[]), CAST(:what AS text[]),
            CAST(:segment AS bigint[]), CAST(:offset AS bigint[]), CAST(:events AS bigint[]))
            AS f (path, kind, what, segment_id, start_offset, events)
        WHERE f.segment_id IS NULL OR EXISTS (  -- it may be another file's by now
            SELECT FROM data_file d WHERE d.stream_id = :s AND d.segment_id = f.segment_id
              AND d.start_offset = f.start_offset AND d.path = f.path)
    )
    INSERT INTO found_damage (path, kind, stream_id, segment_id, start_offset, events, what)
    SELECT f.path, f.kind, :s, f.segment_id, f.start_offset, f.events, f.what FROM found f
    ON CONFLICT (path, kind) DO UPDATE SET what = excluded.what, seen_at = excluded.seen_at,
        segment_id = excluded.segment_id, start_offset = excluded.start_offset,
        events = excluded.events
    RETURNING path, kind"""
)


def record_hashes(
    connection: Connection, stream_id: int, hashes: Sequence[tuple[int, int, str, int]]
) -> None:
    """Record the hashes of all bytes of files whose contents were right: segment id, offset, path
    and hash of each."""
    connection.execute(
        text(
            """UPDATE data_file d SET file_hash = f.hash
            FROM unnest(CAST(:segments AS bigint[]), CAST(:offsets AS bigint[]),
                CAST(:paths AS text[]), CAST(:hashes AS bigint[])) AS f (segment, offs, path, hash)
            WHERE d.stream_id = :s AND d.segment_id = f.segment AND d.start_offset = f.offs
              AND d.path = f.path AND d.file_hash IS NULL"""
        ),
        {
            "s": stream_id, "segments": [one[0] for one in hashes],
            "offsets": [one[1] for one in hashes], "paths": [one[2] for one in hashes],
            "hashes": [one[3] for one in hashes],
        },
    )  # fmt: skip


def position(connection: Connection, stream_id: int) -> tuple[int, int]:
    """Return the file of a stream (segment id, offset) up to which contents were verified."""
    row = connection.execute(
        text("SELECT segment_id, start_offset FROM verification WHERE stream_id = :s"),
        {"s": stream_id},
    ).one_or_none()
    return (-1, -1) if row is None else (row.segment_id, row.start_offset)


def move(connection: Connection, stream_id: int, to: tuple[int, int] | None) -> None:
    """Record up to which file contents were verified; None: up to the end."""
    segment, offset = to or (-1, -1)
    connection.execute(
        text(
            """INSERT INTO verification
                (stream_id, begun_at, segment_id, start_offset, completed_at)
            VALUES (:s, clock_timestamp(), :segment, :offset,
                CASE WHEN :done THEN clock_timestamp() END)
            ON CONFLICT (stream_id) DO UPDATE SET begun_at = excluded.begun_at,
                segment_id = excluded.segment_id, start_offset = excluded.start_offset,
                completed_at = coalesce(excluded.completed_at, verification.completed_at)"""
        ),
        {"s": stream_id, "segment": segment, "offset": offset, "done": to is None},
    )


def in_turn(connection: Connection, again_after: float = 0.0) -> list[int]:
    """Return the streams with files, the one first whose files were not looked at for longest; one
    in which a look has begun goes before others. Without those all of whose files were looked at
    in the last `again_after` seconds."""
    return list(
        connection.execute(
            text(
                """SELECT s.stream_id FROM stream s LEFT JOIN verification v USING (stream_id)
                WHERE s.state <> 'deleted' AND EXISTS (
                    SELECT FROM data_file f WHERE f.stream_id = s.stream_id)
                  AND (v.segment_id >= 0 OR v.completed_at IS NULL OR v.completed_at
                       <= clock_timestamp() - :again_after * interval '1 second')
                ORDER BY coalesce(v.segment_id, -1) < 0, v.completed_at NULLS FIRST, s.stream_id"""
            ),
            {"again_after": again_after},
        ).scalars()
    )
