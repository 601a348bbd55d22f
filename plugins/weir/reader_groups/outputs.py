"""What a batch writes: recorded before it is written, so that what never counts is known to be
garbage; and which Parquet folders count, for readers without Postgres."""

import json
import uuid
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.locks import lock_group
from weir.reader_groups.held import check_held
from weir.reader_groups.new_batch import Batch
from weir.storage import Database
from weir.warehouse import filesystem


def record_output(database: Database, batch: Batch, output: dict[str, Any]) -> None:
    """Record that an attempt begins to write an output: a Parquet folder with its root and path,
    or a table. Raises Fenced when the batch was taken over: then nothing may be written for it."""

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
    """Make garbage of the Parquet folders of a batch (or of all that are open), except those that
    count. In a transaction that has locked the group."""
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


def committed_folders(database: Database, group: str, output: str) -> list[str]:
    """The folders that count, below the output root, in the order of the batches."""
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT path FROM parquet_outputs WHERE reader_group = :group
                AND output = :output ORDER BY batch_id"""
            ),
            {"group": group, "output": output},
        ).all()
    )
    return [row.path for row in rows]


def write_manifest(database: Database, group: str, output: str, root: str, path: str) -> None:
    """Write `_manifest.json` beside a group's batches: the record again, for other readers.

    Derived and rewritten whole, so a run that was killed before it is mended by the next. Readers
    may write it at the same time: whoever writes last has seen all that was committed by then.
    """
    system, base = filesystem(root)
    target = f"{base}/{path}/group={group}/_manifest.json"
    folders = committed_folders(database, group, output)
    written: list[str] = []
    while folders != written:
        new = f"{target}.{uuid.uuid4().hex}"
        with system.open_output_stream(new) as out:
            out.write(json.dumps({"group": group, "output": output, "folders": folders}).encode())
        system.move(new, target)
        written, folders = folders, committed_folders(database, group, output)
