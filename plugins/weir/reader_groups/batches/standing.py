"""Read at once what a reader that asks for a batch may find: mostly, there is nothing to do before
the next one."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from weir.reader_groups.groups.readers import LEASE_EXPIRED
from weir.reader_groups.locks import LockedGroup


class Standing(NamedTuple):
    """How a reader and its group stand. `token`: the newest of the reader, None if it has left.
    `resumes`: there is an open batch that it continues. `expired`: the lease of another reader has.
    `head_moved`: the head of a stream is not the one that the positions were compared with. `ends`:
    by stream id the end of the group, which never lies beyond the tail. `labels`: of its readers.
    """

    token: int | None
    resumes: bool
    expired: bool
    head_moved: bool
    ends: dict[int, dict[str, Any]]
    labels: dict[str, str]


_STANDING = text(
    f"""SELECT (SELECT token FROM reader WHERE group_id = :g AND reader_id = :reader_id) AS token,
    EXISTS (SELECT FROM reader_batch b LEFT JOIN reader r USING (group_id, reader_id)
            WHERE b.group_id = :g AND b.state = 'open'
              AND (b.reader_id = :reader_id OR r.lease_until = '-infinity' OR {LEASE_EXPIRED}))
        AS resumes,
    EXISTS (SELECT FROM reader r WHERE r.group_id = :g AND r.reader_id <> :reader_id
            AND (r.lease_until = '-infinity' OR {LEASE_EXPIRED})) AS expired,
    EXISTS (SELECT FROM reader_group_stream gs JOIN stream s USING (stream_id)
            WHERE gs.group_id = :g AND gs.head_seen IS DISTINCT FROM s.head) AS head_moved,
    (SELECT jsonb_object_agg(stream_id, end_cut) FROM reader_group_stream
     WHERE group_id = :g AND end_cut IS NOT NULL) AS ends,
    (SELECT json_object_agg(reader_id, label ORDER BY reader_id) FROM reader WHERE group_id = :g)
        AS labels"""  # noqa: S608 - constants
)


def read_standing(
    connection: Connection, group: LockedGroup, reader_id: str, lease: float
) -> Standing:
    """Return how a reader and its locked group stand."""
    found = connection.execute(
        _STANDING, {"g": group.group_id, "reader_id": reader_id, "lease": lease}
    ).one()
    ends = {int(stream_id): cut for stream_id, cut in (found.ends or {}).items()}
    return Standing(
        found.token, found.resumes, found.expired, found.head_moved, ends, found.labels or {}
    )
