"""Deleting files: only what this database knows to be dead, after the grace period."""

import contextlib
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from pyarrow import fs
from sqlalchemy import Connection, text

from weir.storage import Database
from weir.warehouse import claim, filesystem

AT_ONCE = 10_000  # files deleted between two statements


def installation(database: Database) -> tuple[str, bool]:
    """This database's identity, and whether nothing has been committed in it yet."""
    row = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT installation_id, NOT EXISTS (
                    SELECT FROM transaction WHERE state = 'committed') AS new
                FROM installation"""
            )
        ).one()
    )
    return str(row.installation_id), row.new


def sweep(database: Database, warehouse: str, grace_period: float) -> dict[str, Any]:
    """Delete garbage older than the grace period (seconds) and than every open batch's opening.

    Killed anywhere, it finishes next time: a row goes only after its file has gone. A file that
    can't be deleted is reported and left for the next time. Raises InvariantViolation when the
    warehouse belongs to another database.
    """
    claim(warehouse, *installation(database))
    files = bytes_ = 0
    failed: list[str] = []
    last = ("", "")
    while True:
        rows = database.transaction(partial(_dead, grace=grace_period, after=last))
        gone = []
        for row in rows:
            try:
                _delete(row.root or warehouse, row.path)
                gone.append(row)
            except OSError as error:
                failed.append(f"{row.root or warehouse}/{row.path} can't be deleted: {error}")
        if gone:
            database.transaction(partial(_forget, gone=gone))
        files += len(gone)
        bytes_ += sum(row.bytes for row in gone)
        if len(rows) < AT_ONCE:
            return {"deleted": files, "bytes": bytes_, "failed": failed}
        last = (rows[-1].root, rows[-1].path)


def _dead(connection: Connection, grace: float, after: tuple[str, str]) -> Sequence[Any]:
    return connection.execute(
        text(
            """SELECT g.root, g.path, g.bytes FROM garbage g
            WHERE (g.root, g.path) > (:root, :path)
              AND g.dead_at + :grace * interval '1 second' <= clock_timestamp()
              AND NOT EXISTS (
                SELECT FROM reader_batch b JOIN reader_group_stream gs USING (group_id)
                WHERE b.state = 'open' AND gs.stream_id = g.stream_id
                  AND b.opened_at <= g.dead_at)
            ORDER BY g.root, g.path LIMIT :most"""
        ),
        {"grace": grace, "most": AT_ONCE, "root": after[0], "path": after[1]},
    ).all()


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
    if isinstance(system, fs.LocalFileSystem):
        # The folders that it leaves empty, up to its transaction's; those of others hold files.
        folder = os.path.dirname(target)
        with contextlib.suppress(OSError):
            while "/_weir_tx=" in folder:
                with contextlib.suppress(FileNotFoundError):  # gone with a sweep that was killed
                    os.rmdir(folder)
                folder = os.path.dirname(folder)
