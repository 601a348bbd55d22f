"""What attempts have written: ready to be committed, or waiting for a roll."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from pyarrow import fs
from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.errors import Fenced
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.erased_keys import ErasedKeys
from weir.model.event_time import EventTimes
from weir.queries.controller import epochs
from weir.queries.controller import staged as sql
from weir.warehouse.filesystem import filesystem, not_readable


def check_written(warehouse: str, staged: Sequence["Staged"]) -> None:
    """Check that the files of attempts, which are about to be committed, are still there as they
    were written, by one listing for each attempt. Raises Fenced, and Unavailable if the
    warehouse's storage does not answer."""
    system, base = filesystem(warehouse)
    for one in staged:
        if not one.files:
            continue
        folder = f"{base}/{one.attempt.folder}".rstrip("/")
        below = fs.FileSelector(folder, allow_not_found=True, recursive=True)
        try:
            found = system.get_file_info(below)
        except OSError as error:
            raise not_readable(warehouse, error) from error
        there = {info.path[len(base) + 1 :]: info.size for info in found}
        lost = [file.path for file in one.files if there.get(file.path) != file.bytes]
        if lost:
            raise Fenced(
                "written_files_gone",
                f"{len(lost)} of the {len(one.files)} files that were written for stream "
                f"{one.attempt.stream} were deleted or changed by somebody before the commit (such "
                f"as {lost[0]}), so nothing was committed; append again.",
            )


def announce(connection: Connection, staged: Staged) -> None:
    """Record that an append is written and waits for a roll, so that a roll may commit it."""
    sql.announce(
        connection,
        stream_id=staged.attempt.stream_id,
        number=staged.attempt.transaction_number,
        attempt=staged.attempt.attempt,
        staged=json.dumps(
            {
                "files": [asdict(file) for file in staged.files],
                "fields": staged.fields,
                "times": staged.times and asdict(staged.times),
                "stated": staged.attempt.stated_until,
                "erased_keys": staged.erased_keys,
            }
        ),
    )


def waiting(connection: Connection, stream: LockedStream, epoch: int) -> list[Staged]:
    """Return the appends of an epoch that wait for a roll, in the order in which they began."""
    rows = sql.waiting(connection, stream_id=stream.stream_id, epoch=epoch)
    if not rows:
        return []
    segments = tuple(epochs.segments_at(connection, stream_id=stream.stream_id, epoch=epoch))
    settings = stream.configuration
    return [
        Staged(
            Attempt(
                stream.stream_id, stream.name, row.transaction_number, row.attempt, segments,
                settings.routing_key, settings.on_missing_key, settings.on_bad_rows,
                stream.schema_version, None, stated_until=row.staged["stated"],
                on_new_column=settings.on_new_column,
                erased=ErasedKeys(row.staged["erased_keys"]),
            ),
            tuple(StagedFile(**file) for file in row.staged["files"]),
            row.staged["fields"],
            times=row.staged["times"] and EventTimes(**row.staged["times"]),
        )
        for row in rows
    ]  # fmt: skip
