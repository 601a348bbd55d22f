"""Batches that are taken over, and that end. Made by `make queries` from sql/queries/reader_groups/batches/lifecycle.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

END = text(
    """SELECT end_batch(:group_id, :batch_id, :reader_id, :token, :lease, CAST(:out AS jsonb),
CAST(:lost AS jsonb), :rejected, :function, :version)"""
)


def end(
    connection: Connection,
    *,
    group_id: int,
    batch_id: int,
    reader_id: str,
    token: int,
    lease: float,
    out: str,
    lost: str,
    rejected: int,
    function: str | None,
    version: str | None,
) -> None:
    """Record a committed batch, with what it made and lost."""
    result = connection.execute(
        END,
        {
            "group_id": group_id,
            "batch_id": batch_id,
            "reader_id": reader_id,
            "token": token,
            "lease": lease,
            "out": out,
            "lost": lost,
            "rejected": rejected,
            "function": function,
            "version": version,
        },
    )
    result.close()


RESUME = text(
    """WITH taken AS (
    SELECT b.batch_id, b.reader_id FROM reader_batch b
    LEFT JOIN reader r USING (group_id, reader_id)
    WHERE b.group_id = :group_id AND b.state = 'open'
      AND (b.reader_id = :reader_id OR reader_is_gone(r.lease_until, :lease))
    ORDER BY b.reader_id <> :reader_id, b.batch_id LIMIT 1
), moved AS (
    UPDATE reader_group_segment p SET reader_id = :reader_id
    FROM taken t, held_segments(:group_id) h
    WHERE t.reader_id <> :reader_id AND h.batch_id = t.batch_id
      AND p.group_id = :group_id AND p.stream_id = h.stream_id
      AND p.segment_id = h.segment_id AND p.reader_id = t.reader_id
)
UPDATE reader_batch b SET reader_id = :reader_id, token = :token,
    attempt = attempt + 1
FROM taken WHERE b.group_id = :group_id AND b.batch_id = taken.batch_id
RETURNING b.batch_id, b.attempt, b.bounds, b.events, b.up_to,
    b.complete_until"""
)


class Resumed(NamedTuple):
    """A row of `resume`."""

    batch_id: int
    attempt: int
    bounds: list[dict[str, int]]
    events: int
    up_to: int | None
    complete_until: int | None


def resume(
    connection: Connection, *, group_id: int, reader_id: str, lease: float, token: int
) -> Resumed | None:
    """Take an open batch over, the reader's own or that of a reader that is gone, and what it reads."""
    result = connection.execute(
        RESUME, {"group_id": group_id, "reader_id": reader_id, "lease": lease, "token": token}
    )
    row = result.one_or_none()
    return None if row is None else Resumed._make(row)


STANDING = text(
    """SELECT (SELECT token FROM reader WHERE group_id = :group_id AND reader_id = :reader_id) AS token,
EXISTS (SELECT FROM reader_batch b LEFT JOIN reader r USING (group_id, reader_id)
        WHERE b.group_id = :group_id AND b.state = 'open'
          AND (b.reader_id = :reader_id OR reader_is_gone(r.lease_until, :lease)))
    AS resumes,
EXISTS (SELECT FROM reader r WHERE r.group_id = :group_id AND r.reader_id <> :reader_id
        AND reader_is_gone(r.lease_until, :lease)) AS expired,
EXISTS (SELECT FROM reader_group_stream gs JOIN stream s USING (stream_id)
        WHERE gs.group_id = :group_id AND gs.head_seen IS DISTINCT FROM s.head) AS head_moved,
coalesce((SELECT jsonb_object_agg(stream_id, end_cut) FROM reader_group_stream
          WHERE group_id = :group_id AND end_cut IS NOT NULL), '{}') AS ends,
coalesce((SELECT json_object_agg(reader_id, label ORDER BY reader_id) FROM reader
          WHERE group_id = :group_id), '{}') AS labels"""
)


class Standing(NamedTuple):
    """A row of `standing`."""

    token: int | None
    resumes: bool
    expired: bool
    head_moved: bool
    ends: dict[str, Cut]
    labels: dict[str, str]


def standing(connection: Connection, *, group_id: int, reader_id: str, lease: float) -> Standing:
    """Return how a reader and its group stand. `token`: the newest of the reader, None if it has left. `resumes`: there is an open batch that it continues. `expired`: the lease of another reader has. `head_moved`: the head of a stream is not the one that the positions were compared with. `ends`: by stream id the end of the group, which never lies beyond the tail. `labels`: of its readers."""
    result = connection.execute(
        STANDING, {"group_id": group_id, "reader_id": reader_id, "lease": lease}
    )
    row = result.one()
    return Standing._make(row)
