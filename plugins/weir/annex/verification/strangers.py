"""Files of the warehouse that the database does not know, and files that were renamed."""

import time
from collections.abc import Sequence
from contextlib import suppress

from pyarrow import fs
from sqlalchemy import Connection

from weir.annex.recovery.inventory import (
    Found,
    Known,
    discard_unknown,
    known_files,
    list_files,
    unknown_in,
)
from weir.annex.verification.damage import OF_LISTS, record
from weir.annex.verification.files import DAMAGED
from weir.annex.verification.recorded import Damage
from weir.controller.locks import lock_streams
from weir.installation.opened import Installation
from weir.queries.annex.verification import strangers as sql
from weir.warehouse.filesystem import filesystem
from weir.warehouse.footer import read_footer
from weir.warehouse.paths import stream_folder

Missing = dict[tuple[int, int], str]  # size and hash of the footer -> path


def look_for_strangers(
    app: Installation, stream_id: int | None, *, repair: bool
) -> tuple[list[Damage], int]:
    """List the folder of a stream (None: the whole warehouse), and record what the database does
    not know. Return it, and how many files were repaired: renamed files are moved back to where
    they were, and the others become garbage, which is deleted after the grace period.

    A file that nobody can be writing any more counts: one that is older than `transaction_max`.
    """
    warehouse = app.settings.warehouse
    before = app.database.transaction(lambda c: known_files(c, written=True))
    there = list_files(warehouse, "" if stream_id is None else stream_folder(stream_id))
    known = app.database.transaction(lambda c: known_files(c, written=True))
    missing = app.database.transaction(_missing)
    latest = time.time() - app.settings.transaction_max
    every: list[Damage] = []
    repaired = 0
    known_before = app.database.transaction(_with_strangers) if stream_id is None else {stream_id}
    for folder in {*there, *known_before}:
        found = there.get(folder, Found())
        unknown = [
            path for path in unknown_in(found, _both(before, known))
            if found.times[path] < latest or (found.files[path] in {size for size, _ in missing})
        ]  # fmt: skip
        renamed = _renamed(warehouse, found, unknown, missing)
        old = [path for path in unknown if found.times[path] < latest and path not in renamed]
        if repair:
            moved = [path for path, to in renamed.items() if _moved_back(warehouse, path, to)]
            repaired += len(moved) + len(old)
            renamed = {path: to for path, to in renamed.items() if path not in moved}
            app.database.transaction(lambda c, s=folder, p=old, f=found: _discard(c, s, p, f))  # type: ignore[misc]  # the loop's own
            old = []
        damage = [Damage("unknown", path, "the database does not know this file") for path in old]
        damage += [Damage("renamed", path, f"it is what {to} was") for path, to in renamed.items()]
        every += app.database.transaction(
            lambda c, s=folder, d=damage: record(c, s, d, looked_at=None, kinds=OF_LISTS)  # type: ignore[misc]  # the loop's own
        )
    return every, repaired


def _with_strangers(connection: Connection) -> set[int | None]:
    """Return the streams in whose folders strangers were found before."""
    return {*sql.with_strangers(connection, kinds=[*OF_LISTS])}


def _both(before: Known, after: Known) -> Known:
    return Known(before.files | after.files, before.garbage | after.garbage, after.streams)


def _missing(connection: Connection) -> Missing:
    """Return the files that are known to be missing."""
    return {(row.bytes, row.end_hash): row.path for row in sql.missing(connection)}


def _renamed(
    warehouse: str, found: Found, unknown: Sequence[str], missing: Missing
) -> dict[str, str]:
    """Return the files that are what missing ones were, with the paths of these."""
    system, base = filesystem(warehouse)
    sizes = {size for size, _ in missing}
    renamed = {}
    for path in unknown:
        size = found.files[path]
        if size not in sizes:
            continue
        with suppress(*DAMAGED), system.open_input_file(f"{base}/{path}") as source:
            end_hash = read_footer(source, size)[1]
            if (size, end_hash) in missing:
                renamed[path] = missing[size, end_hash]
    return renamed


def _moved_back(warehouse: str, path: str, to: str) -> bool:
    """Move a file to where it was, if there is none. Return whether it was moved."""
    system, base = filesystem(warehouse)
    if system.get_file_info(f"{base}/{to}").type != fs.FileType.NotFound:
        return False
    with suppress(OSError):
        system.create_dir(f"{base}/{to.rpartition('/')[0]}", recursive=True)
        system.move(f"{base}/{path}", f"{base}/{to}")
        return True
    return False


def _discard(connection: Connection, stream_id: int | None, paths: list[str], found: Found) -> None:
    if stream_id is not None:
        if sql.is_there(connection, stream_id=stream_id):
            lock_streams(connection, ids=[stream_id])
        else:
            stream_id = None
    discard_unknown(connection, stream_id, paths, found)
