"""What lies in the warehouse, and what the database knows of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from pyarrow import fs
from sqlalchemy import Connection

from weir.model.segment import segment_number
from weir.queries.annex.recovery import inventory as sql
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import ADJUNCT, SEGMENT, TRANSACTION

_TRANSACTION = re.compile(rf"(?:.*/)?{TRANSACTION}=([0-9]+)/(?:.*/)?")
_SEGMENT = re.compile(rf".*/{SEGMENT}=([0-9]+)/")


@dataclass
class Found:
    """What lies in the folder of one stream."""

    files: dict[str, int] = field(default_factory=dict)  # path below the warehouse -> bytes
    times: dict[str, float] = field(default_factory=dict)  # and when it was written
    transaction: int = 0
    segment_number: int = 0
    newest: float = 0.0  # seconds since 1970


def list_files(warehouse: str, folder: str = "") -> dict[int | None, Found]:
    """Return what lies below the warehouse, or below a folder of it, by stream id (None: adjunct
    stores)."""
    system, base = filesystem(warehouse)
    streams: dict[int | None, Found] = {}
    for entry in _files(system, f"{base}/{folder}".rstrip("/")):
        path = entry.path[len(base) + 1 :]
        folder, _, rest = path.partition("/")
        if path.rpartition("/")[2].startswith("."):
            continue  # Hadoop's checksums of local files go with their files
        if path.startswith(ADJUNCT):
            of_stores = streams.setdefault(None, Found())
            of_stores.files[path] = entry.size or 0
            of_stores.times[path] = entry.mtime.timestamp() if entry.mtime else 0.0
        if not (folder.isascii() and folder.isdigit()):
            continue
        found = streams.setdefault(int(folder), Found())
        found.files[path] = entry.size or 0
        found.times[path] = entry.mtime.timestamp() if entry.mtime else 0.0
        found.newest = max(found.newest, found.times[path])
        if match := _TRANSACTION.match(rest):
            found.transaction = max(found.transaction, int(match[1]))
        if match := _SEGMENT.match(rest):
            found.segment_number = max(found.segment_number, segment_number(int(match[1])))
    return streams


def _files(system: fs.FileSystem, base: str) -> Iterator[fs.FileInfo]:
    selector = fs.FileSelector(base, recursive=True, allow_not_found=True)
    return (e for e in system.get_file_info(selector) if e.type == fs.FileType.File)


@dataclass(frozen=True)
class Known:
    """What the database records."""

    files: set[str]
    garbage: set[str]
    streams: list[int]


def known_files(connection: Connection, *, written: bool = False) -> Known:
    """Return what the database records. `written`: garbage has what open appends and builds are
    writing, too, and what they wrote: the database was not restored, so they were not committed.
    What annexes write is beside it: it can be written anew."""
    rows = sql.known_paths(connection, written=written, stores=ADJUNCT, tx=f"/{TRANSACTION}=")
    paths: dict[str, list[str]] = {"file": [], "garbage": [], "stream": []}
    for what, path in rows:
        paths[what].append(path)
    return Known(set(paths["file"]), set(paths["garbage"]), sorted(map(int, paths["stream"])))


def unknown_in(found: Found, known: Known) -> list[str]:
    """Return the files that the database records neither as data nor as garbage."""

    def is_garbage(path: str) -> bool:
        parts = path.split("/")
        above = ("/".join(parts[:i]) + "/" for i in range(1, len(parts)))
        return path in known.garbage or any(folder in known.garbage for folder in above)

    return [path for path in found.files if path not in known.files and not is_garbage(path)]


def discard_unknown(
    connection: Connection, stream_id: int | None, paths: list[str], found: Found
) -> None:
    """Make garbage of files, but not of those that were committed since somebody looked: with the
    stream locked nobody commits any more, and open attempts have been forgotten."""
    sizes = [found.files.get(path, 0) for path in paths]
    sql.discard_unknown(connection, stream_id=stream_id, paths=paths, bytes=sizes)
