"""Record the outputs of batches, and list the Parquet folders that count.

An output is recorded before it is written, so that Weir can delete it if its batch is never
committed. `_manifest.json` lists the folders that count, for readers without Postgres.
"""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Sequence
from typing import Any

from pyarrow import fs
from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.locks import lock_group
from weir.warehouse.filesystem import filesystem, replaces
from weir.warehouse.marker import delete_leftovers
from weir.warehouse.paths import group_folder

# The newest folder of each output of a group, and so where its manifest is, by one look into the
# index for each: their number grows with the batches.
NEWEST = """WITH RECURSIVE known AS (
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
PART = 1000  # how many folders each file beside a manifest lists


def record_output(database: Database, batch: Batch, output: dict[str, Any]) -> None:
    """Record that an attempt begins to write an output: a Parquet folder with its root and path.
    Raises Fenced if the batch was taken over; then nothing may be written for it."""

    def work(connection: Connection) -> None:
        group = lock_group(connection, batch.group)
        check_held(connection, batch)
        connection.execute(
            text(
                """UPDATE reader_batch
                SET outputs = coalesce(outputs, '[]') || CAST(:output AS jsonb)
                WHERE group_id = :g AND batch_id = :b AND state = 'open'
                  AND NOT coalesce(outputs, '[]') @> CAST(:output AS jsonb)"""
            ),
            {"g": group.group_id, "b": batch.batch_id, "output": json.dumps([output])},
        )

    database.transaction(work)


def discard_outputs(
    connection: Connection,
    group_id: int,
    batch_id: int | None = None,
    but: Sequence[dict[str, Any]] = (),
) -> None:
    """Make garbage of the Parquet folders of a batch, or of all open batches of the group, except
    those in `but`. In a transaction that has locked the group."""
    connection.execute(
        text(
            """INSERT INTO garbage (root, path, reason)
            SELECT o ->> 'root', o ->> 'path', 'fenced'
            FROM reader_batch b CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
            WHERE b.group_id = :g
              AND CASE WHEN CAST(:b AS bigint) IS NULL THEN b.state = 'open'
                       ELSE b.batch_id = :b END
              AND o ->> 'kind' = 'parquet' AND NOT CAST(:but AS jsonb) @> jsonb_build_array(o)
            ON CONFLICT (root, path) DO NOTHING"""
        ),
        {"g": group_id, "b": batch_id, "but": json.dumps(list(but))},
    )


def committed_outputs(connection: Connection, group: str, output: str) -> Sequence[Any]:
    """Return root, path and partitions of the folders that count, in the order of the commits."""
    return connection.execute(
        text(
            """SELECT o.root, o.path, o.partitions FROM parquet_output o
            JOIN reader_group g USING (group_id)
            WHERE g.name = :group AND o.output = :output ORDER BY o.number"""
        ),
        {"group": group, "output": output},
    ).all()


def write_manifest(database: Database, group: str, output: str, root: str, path: str) -> None:
    """Write `_manifest.json` beside a group's batches, from what the database has recorded.

    It lists the newest folders itself, and the names of files (`older`) that list `PART` older ones
    each. These are written once; a commit writes their names again, one for `PART` folders. Such a
    name depends on the last folder of the file, too: a database that was restored from a backup
    fills the part with other folders. A run writes again what a killed one has not written. Several
    readers may write at the same time; the last one has seen all commits.
    """
    system, base = filesystem(root)
    folder = f"{base}/{group_folder(path, group)}"
    written: Sequence[Any] = []
    while (rows := _listed(database, group, output)) and rows != written:  # none: it was deleted
        full = rows[0].number // PART
        older = _parts(database, rows[0].group_id, output, full)
        for part in reversed(range(full)):  # parts are written in order: the last one there tells
            if system.get_file_info(f"{folder}/{older[part]}").type != fs.FileType.NotFound:
                break
        else:
            part = -1
        for missing in range(part + 1, full):
            folders = _listed(database, group, output, missing * PART, PART)
            _replace(system, f"{folder}/{older[missing]}", {"folders": [f.path for f in folders]})
        named = [row.path for row in rows]
        content = {"group": group, "output": output, "folders": named, "older": older}
        _replace(system, f"{folder}/_manifest.json", content)
        written = rows


def _listed(
    database: Database, group: str, output: str, start: int | None = None, most: int | None = None
) -> Sequence[Any]:
    """Return group id, number and path of the folders from a number on, `most` of them; without a
    number, of those that the manifest itself lists."""
    return database.transaction(
        lambda c: c.execute(
            text(
                """SELECT o.group_id, o.number, o.path FROM parquet_output o
                JOIN reader_group g USING (group_id)
                WHERE g.name = :group AND o.output = :output AND o.number >= coalesce(:start, (
                    SELECT max(n.number) / :part * :part FROM parquet_output n
                    WHERE n.group_id = g.group_id AND n.output = :output))
                ORDER BY o.number LIMIT :most"""
            ),
            {"group": group, "output": output, "start": start, "part": PART, "most": most},
        ).all()
    )


def _parts(database: Database, group_id: int, output: str, full: int) -> list[str]:
    """Return the names of the files for the parts that are full.

    If two histories of a group, before and after a restore, have the same folder under one number,
    they have the same folders before it.
    """
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT p.part, o.path
                FROM generate_series(0, CAST(:full AS bigint) - 1) AS p (part)
                CROSS JOIN LATERAL (
                    SELECT n.path FROM parquet_output n WHERE n.group_id = :g
                    AND n.output = :output AND n.number = (p.part + 1) * :size - 1 OFFSET 0) o
                ORDER BY p.part"""
            ),
            {"full": full, "g": group_id, "output": output, "size": PART},
        ).all()
    )
    return [
        f"_manifest-{group_id}-{row.part}-{hashlib.sha256(row.path.encode()).hexdigest()[:12]}.json"
        for row in rows
    ]


def _replace(system: fs.FileSystem, target: str, content: dict[str, Any]) -> None:
    if replaces(system):
        with system.open_output_stream(target) as out:
            out.write(json.dumps(content).encode())
        return
    new = f"{target}.{uuid.uuid4().hex}"
    try:
        with system.open_output_stream(new) as out:
            out.write(json.dumps(content).encode())
        system.move(new, target)
    except OSError:
        with contextlib.suppress(OSError):
            system.delete_file(new)
        raise


def sweep_manifests(database: Database) -> list[str]:
    """Delete what killed writers of manifests have left beside them, by one listing for each output
    of a group. Return a sentence for each output whose folder could not be listed."""
    failed = []
    for root, folder in database.transaction(lambda c: c.execute(text(NEWEST)).all()):
        try:
            system, base = filesystem(root)
            delete_leftovers(system, f"{base}/{folder}", r"_manifest[-0-9a-f]*\.json")
        except (OSError, InvalidInput) as error:
            failed.append(f"{root}/{folder} can't be listed: {str(error).splitlines()[0]}")
    return failed
