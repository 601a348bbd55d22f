"""Removing files, in whatever process reaches them; few imports, as executors begin with none."""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from pyarrow import fs

from weir.errors import InvalidInput
from weir.warehouse.filesystem import filesystem

THREADS = 16
_TRIES = 20  # of a folder in which somebody else deletes, too

Files = Sequence[tuple[str, str]]  # root, and the path below it; a folder ends in /
# Deletes files; returns per file that can't be deleted the index and the reason.
Delete = Callable[[Files], dict[int, str]]


def delete_here(files: Files) -> dict[int, str]:
    """Delete with a few threads of this process."""
    share = max(1, min(1000, -(-len(files) // THREADS)))
    with ThreadPoolExecutor(THREADS) as pool:
        found = pool.map(
            lambda first: delete_some(enumerate(files[first : first + share], first)),
            range(0, len(files), share),
        )
        return {i: reason for some in found for i, reason in some}


def delete_some(files: Iterable[tuple[int, tuple[str, str]]]) -> list[tuple[int, str]]:
    """Delete some files, and then the folders that they leave empty; those that can't be deleted,
    with the reason. Runs wherever the files can be reached."""
    failures: list[tuple[int, str]] = []
    systems: dict[str, tuple[fs.FileSystem, str]] = {}
    folders: dict[str, Callable[[str], None]] = {}
    for i, (root, path) in files:
        try:
            if root not in systems:
                systems[root] = _opened(root)
            system, base = systems[root]
            target = f"{base}/{path}".rstrip("/")
            _delete(system, target, folder=path.endswith("/"))
        except (OSError, InvalidInput) as error:
            failures.append((i, str(error)))
            continue
        if remove := _rmdir(system):
            folders[os.path.dirname(target)] = remove
    _remove_empty(folders)
    return failures


def _opened(root: str) -> tuple[fs.FileSystem, str]:
    system, base = filesystem(root)
    # Where nothing is mounted every file seems to be gone. What is no folder but a name, as in an
    # object store, is there without being listed.
    if isinstance(system, fs.LocalFileSystem) and not os.path.isdir(base):
        raise FileNotFoundError(f"the folder {base} is not there; mount it here, or make it")
    return system, base


def _delete(system: fs.FileSystem, target: str, folder: bool) -> None:
    """Delete a file or a whole folder; what is gone already went with a sweep that was killed, or
    goes with another one. Returns when it is gone, and raises OSError when it can't be deleted."""
    if not folder:
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(target)
    elif isinstance(system, fs.LocalFileSystem):
        shutil.rmtree(target, onerror=_unless_gone)
    else:
        # One that stops at what somebody else deleted between its listing and its deleting may
        # have left all the others.
        for _ in range(_TRIES):
            if system.get_file_info(target).type == fs.FileType.NotFound:
                return
            with contextlib.suppress(FileNotFoundError):
                system.delete_dir(target)
        raise OSError(f"it is still there after {_TRIES} tries: others delete or write there")


def _unless_gone(_call: object, _path: str, raised: Any) -> None:
    # pyarrow's way of deleting a local folder stops at the first thing that is gone already.
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]


def _rmdir(system: fs.FileSystem) -> Callable[[str], None] | None:
    """What removes a folder only if it is empty. None for other file systems of pyarrow: there a
    folder goes with all that is in it, or is but a name."""
    if isinstance(system, fs.LocalFileSystem):
        return _remove_local
    if isinstance(system, fs.PyFileSystem):
        remove: Callable[[str], None] = system.handler.remove_empty
        return remove
    return None


def _remove_local(folder: str) -> None:
    # What Hadoop wrote beside local files goes with them; nothing else leads to it.
    names = {*os.listdir(folder)}
    for name in names:
        if name.startswith(".") and name.endswith(".crc") and name[1:-4] not in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
    os.rmdir(folder)


def _remove_empty(folders: Mapping[str, Callable[[str], None]]) -> None:
    """Remove folders while they are empty, up to the one of their transaction."""
    while folders:
        above: dict[str, Callable[[str], None]] = {}
        for folder, remove in folders.items():
            if "/_weir_tx=" not in folder:
                continue
            # Others hold files, and one that is gone already may leave another one empty.
            with contextlib.suppress(OSError):
                with contextlib.suppress(FileNotFoundError):
                    remove(folder)
                above[os.path.dirname(folder)] = remove
        folders = above
