"""Parquet outputs: which attempt of which batch counts, for readers without Postgres."""

import json

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

    Derived and rewritten whole, so a run that was killed before it is mended by the next.
    """
    folders = committed_folders(database, group, output)
    if not folders:
        return
    system, base = filesystem(root)
    target = f"{base}/{path}/group={group}/_manifest.json"
    with system.open_output_stream(target + ".new") as out:
        out.write(json.dumps({"group": group, "output": output, "folders": folders}).encode())
    system.move(target + ".new", target)
