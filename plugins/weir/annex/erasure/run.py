"""One erasure: find the events, write their files without them, and let these take their place."""

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from weir.annex.erasure import records
from weir.annex.erasure.records import Asked, Offsets
from weir.annex.erasure.sums import Sums
from weir.annex.verification.stored import columns_of
from weir.compaction import records as compaction
from weir.compaction.records import Written
from weir.compaction.rewrite import Drop, Unreadable, without
from weir.controller.absent_files import why_unread
from weir.controller.locks import no_such_stream
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import Conflict, Truncated, Unavailable, WeirError
from weir.model.compaction import Small
from weir.model.names import StreamName
from weir.queries.annex.erasure.records import Erased
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, not_writable
from weir.warehouse.marker import check_unused

WAIT = 60.0  # seconds for a compaction that is at work
THREADS = max(1, min(4, os.cpu_count() or 1))  # that write files at the same time

Find = Callable[[], Mapping[int, Offsets]]  # per segment the offsets of the events, ascending


def erase(
    database: Database, settings: Settings, name: StreamName, asked: Asked, find: Find,
    keys: Sequence[str] = (),
) -> Erased:  # fmt: skip
    """Erase the events that `find` returns from the files of a stream, in one transaction. `keys`:
    the routing keys of the stream that are erased from it, of which a stream may refuse new events.

    No other event changes its place, and nobody's position moves. No compaction of the stream works
    meanwhile. Raises NotFound for a stream that does not exist, Conflict while a compaction or
    another erasure of the stream is at work, or if a file can't be written without the events,
    Unavailable if the warehouse takes no files. Whoever is killed has erased nothing; run it again:
    the same request takes over at once, another one when the lease has ended.
    """
    check_warehouse_ownership(database, settings.warehouse)
    stream_id = database.transaction(lambda c: records.stream_id_of(c, name))
    number = _begun(database, settings, name, stream_id, asked.what.get("request"))
    lease = settings.transaction_lease
    try:
        with database.keep_alive(
            lambda c: compaction.renew(c, stream_id, number, lease), every=lease / 3
        ):
            found = find()
            files = database.snapshot(lambda c: records.files_with(c, stream_id, found))
            written, sums = _write(database, settings, name, stream_id, number, files)
            return database.transaction(
                lambda c: records.end(c, name, stream_id, number, asked, written, files, sums, keys)
            )
    except BaseException as error:  # also an exit or an interrupt: nobody else would abort it
        if not isinstance(error, Unavailable):
            with suppress(WeirError):
                database.transaction(lambda c: compaction.abort(c, stream_id, number))
        raise


def _begun(
    database: Database, settings: Settings, name: StreamName, stream_id: int, request: str | None
) -> int:
    """Begin a compaction of the stream, and return its number; wait for one that is at work, unless
    another try of the same request has begun it."""
    compaction.expire(database)
    until, lease, token = time.monotonic() + WAIT, settings.transaction_lease, uuid.uuid4().hex
    while True:
        number = database.transaction(
            lambda c: compaction.begin(c, stream_id, lease, request, token)
        )
        if number is not None:
            return number
        if time.monotonic() >= until:
            raise Conflict(
                "erasure_waits",
                f"a compaction or another erasure of stream {name} is writing its files; nothing "
                "was erased, so run it again when that has ended.",
            )
        time.sleep(1.0)


def _write(
    database: Database, settings: Settings, name: StreamName, stream_id: int, number: int,
    files: Sequence[tuple[Small, Offsets]],
) -> tuple[list[Written], Sums]:  # fmt: skip
    """Write each file without the rows at some offsets, several at the same time. A file that was
    truncated meanwhile is left out."""
    warehouse, folder = settings.warehouse, compaction.folder_of(stream_id, number)
    check_unused(warehouse, folder)
    system, base = filesystem(warehouse)
    columns = database.snapshot(lambda c: columns_of(c, stream_id))
    if columns is None:
        raise no_such_stream(name)
    sums = Sums(columns)

    def write(i: int) -> Written | None:
        file, offsets = files[i]
        drop = Drop(offsets, lambda rows: sums.add(file, rows))
        try:
            return without(system, base, folder, i, file, drop)
        except Unreadable as error:
            why = why_unread(database, warehouse, file.path, error.reason)
            if isinstance(why, Truncated):
                return None
            raise why from error
        except OSError as error:
            raise not_writable(warehouse, error) from error

    with ThreadPoolExecutor(THREADS) as pool:
        return [one for one in pool.map(write, range(len(files))) if one is not None], sums
