"""What the database keeps of publications. Made by `make queries` from sql/annex/publication/queries/records.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

BEFORE = text(
    """SELECT number, lease_until, token,
    greatest(lease_until, pg_postmaster_start_time()) > clock_timestamp() AS busy
FROM publication WHERE stream_id = :stream_id"""
)


class Before(NamedTuple):
    """A row of `before`."""

    number: int
    lease_until: datetime | None
    token: str | None
    busy: bool


def before(connection: Connection, *, stream_id: int) -> Before | None:
    """Return the last publication of a stream, and whether it is at work."""
    result = connection.execute(BEFORE, {"stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Before._make(row)


BEGIN = text(
    """WITH given AS (
    UPDATE stream SET next_transaction_number = next_transaction_number + 1
    WHERE stream_id = :stream_id RETURNING next_transaction_number - 1 AS number
)
INSERT INTO publication (stream_id, number, lease_until, token)
SELECT :stream_id, number, clock_timestamp() + :lease * interval '1 second', :token
FROM given
ON CONFLICT (stream_id) DO UPDATE SET number = excluded.number,
    lease_until = excluded.lease_until, token = excluded.token
RETURNING number"""
)


def begin(connection: Connection, *, stream_id: int, lease: float, token: str | None) -> int:
    """Begin a publication, and return its number."""
    result = connection.execute(BEGIN, {"stream_id": stream_id, "lease": lease, "token": token})
    value: int = result.scalar_one()
    return value


DISCARD = text(
    """INSERT INTO garbage (root, path, stream_id, reason)
VALUES ('', :folder, :stream_id, 'aborted') ON CONFLICT (root, path) DO NOTHING"""
)


def discard(connection: Connection, *, folder: str, stream_id: int) -> None:
    """Make garbage of a folder that a publication wrote."""
    result = connection.execute(DISCARD, {"folder": folder, "stream_id": stream_id})
    result.close()


END = text(
    """UPDATE publication SET lease_until = NULL, problem = :problem
WHERE stream_id = :stream_id AND number = :number AND lease_until IS NOT NULL"""
)


def end(connection: Connection, *, problem: str | None, stream_id: int, number: int) -> int:
    """End a publication that has made nothing of the table."""
    result = connection.execute(END, {"problem": problem, "stream_id": stream_id, "number": number})
    return result.rowcount


HELD = text(
    """SELECT number, lease_until IS NOT NULL AS goes_on, metadata
FROM publication WHERE stream_id = :stream_id"""
)


class Held(NamedTuple):
    """A row of `held`."""

    number: int
    goes_on: bool
    metadata: str | None


def held(connection: Connection, *, stream_id: int) -> Held | None:
    """Return the last publication of a stream, whether it goes on, and what it made the table."""
    result = connection.execute(HELD, {"stream_id": stream_id})
    row = result.one_or_none()
    return None if row is None else Held._make(row)


ARE_GONE = text(
    """SELECT EXISTS (SELECT FROM unnest(CAST(:segments AS bigint[]),
    CAST(:starts AS bigint[]), CAST(:paths AS text[])) AS n (segment, start, path)
LEFT JOIN data_file f ON f.stream_id = :stream_id AND f.segment_id = n.segment
    AND f.start_offset = n.start AND f.path = n.path WHERE f.path IS NULL)"""
)


def are_gone(
    connection: Connection,
    *,
    segments: Sequence[int],
    starts: Sequence[int],
    paths: Sequence[str],
    stream_id: int,
) -> bool:
    """Return whether one of some files is no file of the stream any more."""
    result = connection.execute(
        ARE_GONE,
        {
            "segments": list(segments),
            "starts": list(starts),
            "paths": list(paths),
            "stream_id": stream_id,
        },
    )
    value: bool = result.scalar_one()
    return value


END_FILES = text(
    """UPDATE published_file SET until = :sequence
WHERE stream_id = :stream_id AND until IS NULL AND path = ANY (CAST(:paths AS text[]))"""
)


def end_files(
    connection: Connection, *, sequence: int, stream_id: int, paths: Sequence[str]
) -> None:
    """Record that files are not in this snapshot any more."""
    result = connection.execute(
        END_FILES, {"sequence": sequence, "stream_id": stream_id, "paths": list(paths)}
    )
    result.close()


MOVE_FILES = text(
    """UPDATE published_file p SET manifest = m.new
FROM unnest(CAST(:old AS text[]), CAST(:new AS text[])) AS m (old, new)
WHERE p.stream_id = :stream_id AND p.manifest = m.old AND p.until IS NULL"""
)


def move_files(
    connection: Connection, *, old: Sequence[str], new: Sequence[str], stream_id: int
) -> None:
    """Record that manifests have the other entries of others."""
    result = connection.execute(
        MOVE_FILES, {"old": list(old), "new": list(new), "stream_id": stream_id}
    )
    result.close()


ADD_FILES = text(
    """INSERT INTO published_file (stream_id, path, manifest, since, until)
SELECT :stream_id, n.path, n.manifest, :sequence, n.until FROM (
    SELECT unnest(CAST(:paths AS text[])) AS path, CAST(:manifest AS text) AS manifest,
           NULL::bigint AS until
    UNION ALL
    SELECT unnest(CAST(:new AS text[])), NULL, NULL
    UNION ALL
    SELECT unnest(CAST(:only AS text[])), NULL, :sequence + 1) n"""
)


def add_files(
    connection: Connection,
    *,
    stream_id: int,
    sequence: int,
    paths: Sequence[str],
    manifest: str | None,
    new: Sequence[str],
    only: Sequence[str],
) -> None:
    """Record the files of a snapshot: data files, with their manifest, and metadata; of that some is of this snapshot `only`."""
    result = connection.execute(
        ADD_FILES,
        {
            "stream_id": stream_id,
            "sequence": sequence,
            "paths": list(paths),
            "manifest": manifest,
            "new": list(new),
            "only": list(only),
        },
    )
    result.close()


EXPIRE = text("""SELECT expire_published(:stream_id, :below, :grace, :compacted)""")


def expire(
    connection: Connection, *, stream_id: int, below: int, grace: float, compacted: float
) -> None:
    """Let what only snapshots below a sequence number name go."""
    result = connection.execute(
        EXPIRE, {"stream_id": stream_id, "below": below, "grace": grace, "compacted": compacted}
    )
    result.close()


PUBLISH = text(
    """UPDATE publication SET lease_until = NULL, sequence = :sequence, root = :root,
    previous_metadata = metadata, metadata = :metadata, cut = CAST(:cut AS jsonb),
    clock = :clock, head = CAST(:head AS jsonb), events = :events, files = :files,
    compacted = :compacted, masked = CAST(:masked AS jsonb),
    schema_version = :version, published_at = clock_timestamp(), problem = NULL
WHERE stream_id = :stream_id"""
)


def publish(
    connection: Connection,
    *,
    sequence: int,
    root: str,
    metadata: str,
    cut: str,
    clock: int,
    head: str,
    events: int,
    files: int,
    compacted: int,
    masked: str,
    version: int,
    stream_id: int,
) -> None:
    """Make what was written the table."""
    result = connection.execute(
        PUBLISH,
        {
            "sequence": sequence,
            "root": root,
            "metadata": metadata,
            "cut": cut,
            "clock": clock,
            "head": head,
            "events": events,
            "files": files,
            "compacted": compacted,
            "masked": masked,
            "version": version,
            "stream_id": stream_id,
        },
    )
    result.close()


FORGET = text("""SELECT forget_publication(:stream_id)""")


def forget(connection: Connection, *, stream_id: int) -> None:
    """End the publication of a locked stream, if there is one."""
    result = connection.execute(FORGET, {"stream_id": stream_id})
    result.close()
