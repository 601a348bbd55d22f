"""The ownership marker of a warehouse: a file with the id of its installation, how often the
warehouse was swept, and where it is.

Another place is refused, because from inside nobody can tell a copy from a folder that was moved; a
person can, and says so with `weir_recover`. A database records no place: a restored one would
refuse its own warehouse.
"""

import contextlib
import logging
import os
import re
import time
import uuid
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pyarrow import fs

from weir.errors import InvariantViolation
from weir.front_ends import do
from weir.warehouse.filesystem import (
    filesystem,
    make_folder,
    not_readable,
    not_writable,
    replaces,
)

log = logging.getLogger("weir.warehouse")
MARKER = "_weir_installation"  # the name of the file
LEFT = 3600  # seconds after which nobody still writes a file as small as this one
RECOVERY_GAP = 1_000_000  # how far above all numbers that it finds a recovered database continues


class Marker(NamedTuple):
    """The content of a warehouse's ownership marker; empty if there is none."""

    installation_id: str = ""
    sweep_count: int = 0
    locations: tuple[str, ...] = ()  # the names under which the warehouse was found right

    def is_at(self, root: str) -> bool:
        """Return whether a root is the warehouse's, and not that of a copy. A marker that was
        written before markers said it may be anywhere."""
        return not self.locations or not names_of(root).isdisjoint(self.locations)


def names_of(root: str) -> set[str]:
    """Return the names of a root. A local folder has two: as it is named, and where that leads. The
    same link may lead to another disk tomorrow, and another host may have no link."""
    parts = urlsplit(root)
    if "://" not in root or parts.scheme == "file":
        path = unquote(parts.path) if "://" in root else root
        return {os.path.abspath(path), os.path.realpath(path)}
    return {location(root)}


def location(root: str) -> str:
    """Return where a root is, without a login, so that equal ones are equal."""
    parts = urlsplit(root)
    if "://" not in root or parts.scheme == "file":
        return os.path.realpath(unquote(parts.path) if "://" in root else root)
    login, _, host = parts.netloc.rpartition("@")
    if not parts.scheme.startswith("s3") and ":" not in login:
        host = parts.netloc  # abfss://container@account
    return f"{parts.scheme.replace('s3a', 's3')}://{host}{parts.path}".rstrip("/")


def check_unused(root: str, folder: str) -> None:
    """Check that the folder of an attempt that begins to write does not exist.

    Raises InvariantViolation if it does: a database that knew more than this one has given out its
    number before. The marker then makes all other operations refuse until weir_recover has run.
    """
    system, base = filesystem(root)
    try:  # a listing, because it is one request to an object store
        system.get_file_info(fs.FileSelector(f"{base}/{folder}".rstrip("/")))
    except FileNotFoundError:
        return
    marker = read_marker(root)
    write_marker(root, marker._replace(sweep_count=marker.sweep_count + RECOVERY_GAP))
    raise InvariantViolation(
        "database_restored",
        f"the warehouse {root} already has files in {folder}, although this database never wrote "
        f"there, so the database was restored from a backup; first {do('recover')} (nothing was "
        "changed).",
    )


def write_marker(root: str, marker: Marker, *, moved: bool = False) -> None:
    """Write the marker of a warehouse, unless the same installation's marker there has a larger
    sweep count. `locations`: beside this one, and those in the marker that is there; if it was
    `moved`, only those of them that are seen to be the same folder.

    Of two sweeps at the same time the slower one has the smaller count. An alarm of `check_unused`
    must stay. Raises Unavailable if nothing can be written there. A full local disk still takes the
    bytes of a marker that it has: otherwise no sweep could free it.
    """
    files, base = filesystem(root)
    path = f"{base}/{MARKER}"
    at_once = replaces(files)
    # Renamed when whole: a kill leaves no empty marker.
    written = path if at_once else f"{path}.{uuid.uuid4().hex}"
    before = read_marker(root)
    same = before.installation_id == marker.installation_id
    known = [one for one in before.locations if same and not (moved and _is_elsewhere(one, root))]
    locations = {*marker.locations, *known, *names_of(root)}
    lines = [marker.installation_id, str(marker.sweep_count), *sorted(locations)]
    content = "".join(f"{line}\n" for line in lines).encode()
    if at_once and same and before.sweep_count > marker.sweep_count:
        return
    full: OSError | None = None
    try:
        make_folder(files, base)
        with files.open_output_stream(written) as out:
            out.write(content)
    except OSError as error:
        if at_once:
            raise not_writable(root, error) from error
        full = error
        with contextlib.suppress(OSError):
            files.delete_file(written)
    if at_once:
        return
    # No file system compares and renames in one step: a marker that another process writes between
    # these two calls is lost. Then only the next sweep shows that a backup is older.
    found = read_marker(root)
    same = found.installation_id == marker.installation_id
    newer = same and found.sweep_count > marker.sweep_count
    if full is None:
        files.delete_file(written) if newer else files.move(written, path)
    elif moved or not (
        same and isinstance(files, fs.LocalFileSystem) and _overwritten(path, content)
    ):
        raise not_writable(root, full) from full


def _is_elsewhere(place: str, root: str) -> bool:
    """Return whether a place is not seen to be the folder of a root under another name."""
    try:
        return not os.path.samefile(place, location(root))
    except OSError:  # there is nothing here, or it is no local folder
        return True


def delete_leftovers(system: fs.FileSystem, folder: str, name: str) -> int:
    """Delete what killed writers of a file have left beside it: its name and a number, an hour old.
    Return how many there were."""
    if replaces(system):
        return 0
    old = time.time() - LEFT
    beside = system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
    written = re.compile(rf"\.?{name}\.[0-9a-f]{{32}}(\.crc)?")
    found = [
        one.path for one in beside
        if one.type == fs.FileType.File and written.fullmatch(one.base_name)
        and one.mtime is not None and one.mtime.timestamp() < old
    ]  # fmt: skip
    for path in found:
        with contextlib.suppress(OSError):  # another sweep did, or the next one will
            system.delete_file(path)
    return len(found)


def _overwritten(path: str, content: bytes) -> bool:
    """Overwrite a marker in its block, which one write does whole or not at all, unless it is
    larger already; return whether there is as much now."""
    try:
        with open(path, "r+b", buffering=0) as file:
            if _count(file.read()) < _count(content):
                file.seek(0)
                file.write(content)
                os.fsync(file.fileno())
    except OSError:
        return False
    log.warning("the disk of the warehouse is full; %s was overwritten in place", path)
    return True


def read_marker(root: str) -> Marker:
    """Return the marker of a warehouse; an empty one if there is none. Raises Unavailable if its
    storage does not answer, and InvariantViolation if it is damaged."""
    files, base = filesystem(root)
    path = f"{base}/{MARKER}"
    try:
        with files.open_input_stream(path) as stream:
            content = bytes(stream.read())
    except FileNotFoundError:
        return Marker()
    except OSError as error:
        raise not_readable(root, error) from error
    try:
        lines = [line.strip() for line in content.decode().splitlines()]
        if "\0" in content.decode():
            raise ValueError
        return Marker((lines or [""])[0], _count(content), tuple(one for one in lines[2:] if one))
    except ValueError:
        raise InvariantViolation(
            "file_missing",
            f"the file {MARKER} of the warehouse {root} is damaged; put it back from a backup: its "
            "first line is the id of the installation, and its second how often the warehouse was "
            "swept.",
        ) from None


def _count(content: bytes) -> int:
    lines = content.decode().splitlines()
    return int(lines[1].strip() or 0) if len(lines) > 1 else 0
