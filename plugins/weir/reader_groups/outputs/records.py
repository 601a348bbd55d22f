"""Record the outputs of batches, and list the Parquet folders that count.

An output is recorded before it is written, so that Weir can delete it if its batch is never
committed. `_manifest.json` lists the folders that count, for readers without Postgres.
"""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Mapping, Sequence

from pyarrow import fs
from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.queries.reader_groups.outputs import records as sql
from weir.reader_groups.batch import Batch, check_held
from weir.reader_groups.locks import lock_group
from weir.warehouse.filesystem import filesystem, replaces
from weir.warehouse.marker import delete_leftovers
from weir.warehouse.paths import group_folder

PART = 1000  # how many folders each file beside a manifest lists


def record_output(database: Database, batch: Batch, output: Mapping[str, object]) -> None:
    """Record that an attempt begins to write an output: a Parquet folder with its root and path.
    Raises Fenced if the batch was taken over; then nothing may be written for it."""

    def work(connection: Connection) -> None:
        group = lock_group(connection, batch.group)
        check_held(connection, batch)
        sql.record(
            connection,
            group_id=group.group_id,
            batch_id=batch.batch_id,
            output=json.dumps([output]),
        )

    database.transaction(work)


def discard_outputs(
    connection: Connection,
    group_id: int,
    batch_id: int | None = None,
    but: Sequence[Mapping[str, object]] = (),
) -> None:
    """Make garbage of the Parquet folders of a batch, or of all open batches of the group, except
    those in `but`. In a transaction that has locked the group."""
    sql.discard(connection, group_id=group_id, batch_id=batch_id, but=json.dumps(list(but)))


def committed_outputs(connection: Connection, group: str, output: str) -> list[sql.CommittedFolder]:
    """Return root, path and partitions of the folders that count, in the order of the commits."""
    return sql.committed(connection, group=group, output=output)


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
    written: list[sql.Folder] = []
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
) -> list[sql.Folder]:
    """Return the folders from a number on, `most` of them; without a number, those that the
    manifest itself lists."""
    return database.transaction(
        lambda c: sql.listed(c, group=group, output=output, start=start, part=PART, most=most)
    )


def _parts(database: Database, group_id: int, output: str, full: int) -> list[str]:
    """Return the names of the files for the parts that are full.

    If two histories of a group, before and after a restore, have the same folder under one number,
    they have the same folders before it.
    """
    rows = database.transaction(
        lambda c: sql.parts(c, full=full, group_id=group_id, output=output, size=PART)
    )
    return [
        f"_manifest-{group_id}-{row.part}-{hashlib.sha256(row.path.encode()).hexdigest()[:12]}.json"
        for row in rows
    ]


def _replace(system: fs.FileSystem, target: str, content: Mapping[str, object]) -> None:
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
    for root, folder in database.transaction(sql.newest):
        try:
            system, base = filesystem(root)
            delete_leftovers(system, f"{base}/{folder}", r"_manifest[-0-9a-f]*\.json")
        except (OSError, InvalidInput) as error:
            failed.append(f"{root}/{folder} can't be listed: {str(error).splitlines()[0]}")
    return failed
