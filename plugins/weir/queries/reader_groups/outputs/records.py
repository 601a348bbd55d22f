"""Outputs of batches, and the folders that count. Made by `make queries` from sql/queries/reader_groups/outputs/records.sql."""

from typing import NamedTuple

from sqlalchemy import Connection, text

RECORD = text(
    """UPDATE reader_batch
SET outputs = coalesce(outputs, '[]') || CAST(:output AS jsonb)
WHERE group_id = :group_id AND batch_id = :batch_id AND state = 'open'
  AND NOT coalesce(outputs, '[]') @> CAST(:output AS jsonb)"""
)


def record(connection: Connection, *, output: str, group_id: int, batch_id: int) -> None:
    """Record an output of an open batch."""
    result = connection.execute(
        RECORD, {"output": output, "group_id": group_id, "batch_id": batch_id}
    )
    result.close()


DISCARD = text(
    """INSERT INTO garbage (root, path, reason)
SELECT o ->> 'root', o ->> 'path', 'fenced'
FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
WHERE b.group_id = :group_id
  AND CASE WHEN CAST(:batch_id AS bigint) IS NULL THEN b.state = 'open'
           ELSE b.batch_id = :batch_id END
  AND o ->> 'kind' = 'parquet' AND NOT CAST(:but AS jsonb) @> jsonb_build_array(o)
ON CONFLICT (root, path) DO NOTHING"""
)


def discard(connection: Connection, *, group_id: int, batch_id: int | None, but: str) -> None:
    """Make garbage of Parquet folders of a batch, or of all open batches of a group."""
    result = connection.execute(DISCARD, {"group_id": group_id, "batch_id": batch_id, "but": but})
    result.close()


COMMITTED = text(
    """SELECT o.root, o.path, o.partitions FROM parquet_output o
JOIN reader_group g USING (group_id)
WHERE g.name = :group AND o.output = :output ORDER BY o.number"""
)


class CommittedFolder(NamedTuple):
    """A row of `committed`."""

    root: str
    path: str
    partitions: str


def committed(connection: Connection, *, group: str, output: str) -> list[CommittedFolder]:
    """Return the folders that count, in the order of the commits."""
    result = connection.execute(COMMITTED, {"group": group, "output": output})
    return [CommittedFolder._make(row) for row in result]


LISTED = text(
    """SELECT o.group_id, o.number, o.path FROM parquet_output o
JOIN reader_group g USING (group_id)
WHERE g.name = :group AND o.output = :output AND o.number >= coalesce(:start, (
    SELECT max(n.number) / :part * :part FROM parquet_output n
    WHERE n.group_id = g.group_id AND n.output = :output))
ORDER BY o.number LIMIT :most"""
)


class Folder(NamedTuple):
    """A row of `listed`."""

    group_id: int
    number: int
    path: str


def listed(
    connection: Connection,
    *,
    group: str,
    output: str,
    start: int | None,
    part: int,
    most: int | None,
) -> list[Folder]:
    """Return the folders from a number on; without one, those that the manifest itself lists."""
    result = connection.execute(
        LISTED, {"group": group, "output": output, "start": start, "part": part, "most": most}
    )
    return [Folder._make(row) for row in result]


PARTS = text(
    """SELECT p.part, o.path
FROM generate_series(0, CAST(:full AS bigint) - 1) AS p (part)
CROSS JOIN LATERAL (
    SELECT n.path FROM parquet_output n WHERE n.group_id = :group_id
    AND n.output = :output AND n.number = (p.part + 1) * :size - 1 OFFSET 0) o
ORDER BY p.part"""
)


class Part(NamedTuple):
    """A row of `parts`."""

    part: int
    path: str


def parts(
    connection: Connection, *, full: int, group_id: int, output: str, size: int
) -> list[Part]:
    """Return the last folder of each full part of a manifest."""
    result = connection.execute(
        PARTS, {"full": full, "group_id": group_id, "output": output, "size": size}
    )
    return [Part._make(row) for row in result]


NEWEST = text(
    """WITH RECURSIVE known AS (
    (SELECT group_id, output FROM parquet_output ORDER BY group_id, output LIMIT 1)
    UNION ALL
    SELECT n.group_id, n.output FROM known CROSS JOIN LATERAL (
        SELECT o.group_id, o.output FROM parquet_output o
        WHERE (o.group_id, o.output) > (known.group_id, known.output)
        ORDER BY o.group_id, o.output LIMIT 1) n)
SELECT DISTINCT n.root, regexp_replace(n.path, '/batch=[^/]*/.*$', '') AS folder
FROM known CROSS JOIN LATERAL (
    SELECT o.root, o.path FROM parquet_output o
    WHERE o.group_id = known.group_id AND o.output = known.output
    ORDER BY o.number DESC LIMIT 1) n
ORDER BY n.root, folder"""
)


class NewestFolder(NamedTuple):
    """A row of `newest`."""

    root: str
    folder: str


def newest(connection: Connection) -> list[NewestFolder]:
    """Return the newest folder of each output of a group, and so where its manifest is, by one look into the index for each: their number grows with the batches."""
    result = connection.execute(NEWEST)
    return [NewestFolder._make(row) for row in result]
