"""Deleting files: only what this database knows to be dead, after the grace period."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pyarrow import fs
from sqlalchemy import Connection, text

from weir.storage import Database
from weir.warehouse import claim, filesystem

AT_ONCE = 10_000  # files deleted between two statements


def installation_id(database: Database) -> str:
    """This database's identity."""
    return str(
        database.transaction(
            lambda c: c.execute(text("SELECT installation_id FROM installation")).scalar_one()
        )
    )


def sweep(database: Database, warehouse: str, grace_period: float) -> dict[str, Any]:
    """Delete garbage older than the grace period (seconds) and than every open batch's opening.

    Killed anywhere, it finishes next time: a row goes only after its file has gone. Raises
    InvariantViolation when the warehouse belongs to another database.
    """
    claim(warehouse, installation_id(database))
    files = bytes_ = 0
    while True:
        rows = database.transaction(
            lambda c: c.execute(
                text(
                    """SELECT g.root, g.path, g.bytes FROM garbage g
                    WHERE g.dead_at + :grace * interval '1 second' <= clock_timestamp()
                      AND NOT EXISTS (
                        SELECT FROM reader_batch b JOIN reader_group_stream gs USING (group_id)
                        WHERE b.state = 'open' AND gs.stream_id = g.stream_id
                          AND b.opened_at <= g.dead_at)
                    ORDER BY g.root, g.path LIMIT :most"""
                ),
                {"grace": grace_period, "most": AT_ONCE},
            ).all()
        )
        for row in rows:
            _delete(row.root or warehouse, row.path)
        if rows:
            database.transaction(partial(_forget, gone=rows))
        files += len(rows)
        bytes_ += sum(row.bytes for row in rows)
        if len(rows) < AT_ONCE:
            return {"deleted": files, "bytes": bytes_}


def _forget(connection: Connection, gone: Sequence[Any]) -> None:
    connection.execute(
        text(
            """DELETE FROM garbage g USING unnest(CAST(:roots AS text[]), CAST(:paths AS text[]))
                AS d (root, path)
            WHERE g.root = d.root AND g.path = d.path"""
        ),
        {"roots": [row.root for row in gone], "paths": [row.path for row in gone]},
    )


def _delete(root: str, path: str) -> None:
    system, base = filesystem(root)
    target = f"{base}/{path}".rstrip("/")
    kind = system.get_file_info(target).type
    if kind == fs.FileType.Directory:
        system.delete_dir(target)
    elif kind == fs.FileType.File:
        system.delete_file(target)
