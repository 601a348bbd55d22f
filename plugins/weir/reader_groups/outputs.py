"""Parquet outputs: which attempt of which batch counts, for readers without Postgres."""

import json
import uuid

from sqlalchemy import text

from weir.storage import Database
from weir.warehouse import filesystem


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
