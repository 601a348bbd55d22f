"""Copy files, and know of each what was read: how many bytes, with which SHA-256.

A file has its name when it is whole. Files of a warehouse never change, and no name is given twice,
so a file that was copied once is right for ever.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import monotonic
from typing import NamedTuple, TypeVar

from pyarrow import fs

from weir.errors import counted
from weir.model.amounts import say_size
from weir.warehouse.filesystem import make_folder, replaces

T = TypeVar("T")
_PIECE = 1 << 20
_AT_ONCE = 4
_EVERY = 5.0  # seconds between two lines of progress


class Listed(NamedTuple):
    """A file: its path below the warehouse, its bytes, and their SHA-256, where it is known."""

    path: str
    bytes: int
    sha256: str = ""


class Place(NamedTuple):
    """A folder of a file system."""

    system: fs.FileSystem
    base: str

    def read(self, path: str, into: Callable[[bytes], object] = len) -> Listed | None:
        """Read a file through, and return what it is; None if it is not there."""
        digest, size = hashlib.sha256(), 0
        try:
            with self.system.open_input_stream(f"{self.base}/{path}") as file:
                while piece := file.read(_PIECE):
                    digest.update(piece)
                    size += len(piece)
                    into(piece)
        except FileNotFoundError:
            return None
        return Listed(path, size, digest.hexdigest())

    def size(self, path: str) -> int | None:
        """Return the bytes of a file; None if it is not there."""
        info = self.system.get_file_info(f"{self.base}/{path}")
        return info.size if info.type == fs.FileType.File else None


def copy(source: Place, target: Place, path: str) -> Listed | None:
    """Copy a file; return what was read, or None if it is not there any more."""
    return put(target, path, partial(source.read, path))


def put(target: Place, path: str, fill: Callable[[Callable[[bytes], object]], T]) -> T:
    """Write a file with what `fill` writes, and return what that returns; if None, without one."""
    place = f"{target.base}/{path}"
    make_folder(target.system, os.path.dirname(place))
    written = place if replaces(target.system) else f"{os.path.dirname(place)}/.{_name(place)}.new"
    with target.system.open_output_stream(written) as out:
        found = fill(out.write)
    if found is None:
        target.system.delete_file(written)
    elif written != place:
        if isinstance(target.system, fs.LocalFileSystem):
            os.replace(written, place)
        else:
            with contextlib.suppress(FileNotFoundError):
                target.system.delete_file(place)
            target.system.move(written, place)
    return found


def each(
    what: str,
    files: Sequence[Listed],
    work: Callable[[Listed], Listed | None],
    say: Callable[[str], object],
) -> Iterator[tuple[Listed, Listed | None]]:
    """Yield each file with the result of some work on it, and say every few seconds how far it
    is."""
    whole, size, done, last = len(files), sum(one.bytes for one in files), 0, monotonic()
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        for number, (file, result) in enumerate(zip(files, pool.map(work, files), strict=True), 1):
            done += file.bytes
            if monotonic() - last > _EVERY or number == whole:
                of = f"{number:,} of {counted(whole, 'file')}"
                say(f"{what} {of}, {say_size(done)} of {say_size(size)}")
                last = monotonic()
            yield file, result


def delete_others(folder: Path, wanted: set[str]) -> None:
    """Delete the files of a folder that are not wanted, and the folders that are empty then."""
    for above, _, names in os.walk(folder, topdown=False):
        for name in names:
            if str(Path(above, name).relative_to(folder)) not in wanted:
                os.unlink(Path(above, name))
        if Path(above) != folder and not os.listdir(above):
            os.rmdir(above)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
