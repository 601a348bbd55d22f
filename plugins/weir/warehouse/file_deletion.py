"""Delete files, in whichever process can reach them. Few imports, because executors begin without
any.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyarrow import fs

from weir.errors import InvalidInput
from weir.warehouse.filesystem import filesystem, is_s3
from weir.warehouse.paths import MADE

THREADS = 16
_OBJECTS = 200  # of S3, with the folders above them: one request deletes as many
_TRIES = 20  # at a folder in which another sweep deletes too
_PAUSE = 0.01  # seconds by which the pause before each try is longer than the one before

Files = Sequence[tuple[str, str]]  # root, and the path below it; a folder ends in /
# Deletes files; returns the index and the reason of each file that cannot be deleted.
Delete = Callable[[Files], dict[int, str]]


def delete_here(files: Files) -> dict[int, str]:
    """Delete files with a few threads of this process; return the index and reason of each
    failure.
    """
    parts = []
    for objects in (False, True):
        some = [(i, file) for i, file in enumerate(files) if is_s3(file[0]) == objects]
        share = _OBJECTS if objects else max(1, min(1000, -(-len(some) // THREADS)))
        parts += [some[first : first + share] for first in range(0, len(some), share)]
    with ThreadPoolExecutor(THREADS) as pool:
        return {i: reason for failures in pool.map(delete_some, parts) for i, reason in failures}


def delete_some(files: Iterable[tuple[int, tuple[str, str]]]) -> list[tuple[int, str]]:
    """Delete some files, and then the folders that this empties.

    Returns the files that could not be deleted, with the reason. Runs in any process that can reach
    the files.
    """
    failures: list[tuple[int, str]] = []
    systems: dict[str, tuple[fs.FileSystem, str]] = {}
    folders: dict[str, Callable[[str], None]] = {}
    objects: dict[str, list[tuple[int, str]]] = {}
    for i, (root, path) in files:
        if is_s3(root):
            objects.setdefault(root, []).append((i, path))
            continue
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
    for root, some in objects.items():
        failures += _delete_objects(root, some)
    return failures


def _delete_objects(root: str, numbered: Sequence[tuple[int, str]]) -> list[tuple[int, str]]:
    """Delete objects of S3, and those that stand for the folders above them, which Spark makes."""
    paths = {path for _, path in numbered}
    above = {folder for path in paths for folder in _folders_above(path)}
    try:
        from weir.warehouse.objects import delete_objects

        failed = delete_objects(root, [*paths], [*above])
    except ImportError:
        said = "to delete on S3, install botocore (`pip install 'weir-streams[s3]'`)"
        failed = dict.fromkeys(paths, said)
    except OSError as error:
        failed = dict.fromkeys(paths, str(error))
    return [(i, failed[path]) for i, path in numbered if path in failed]


def delete_if_empty(root: str, folder: str) -> None:
    """Delete a folder below a root if nothing is in it; of an object store, the object that stands
    for it."""
    if is_s3(root):
        with contextlib.suppress(ImportError):
            from weir.warehouse.objects import delete_objects

            delete_objects(root, [], [f"{folder}/"])
        return
    system, base = _opened(root)
    if remove := _rmdir(system):
        with contextlib.suppress(OSError):  # something is in it
            remove(f"{base}/{folder}")


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, up to that of its transaction, batch or version."""
    folder = os.path.dirname(path.rstrip("/"))
    while MADE.search(f"/{folder}"):
        yield f"{folder}/"
        folder = os.path.dirname(folder)


def _opened(root: str) -> tuple[fs.FileSystem, str]:
    system, base = filesystem(root)
    # Without this check, every file of a folder that is not mounted would count as deleted. An
    # object store needs no check: its folders are only parts of names.
    if isinstance(system, fs.LocalFileSystem) and not os.path.isdir(base):
        raise FileNotFoundError(f"the folder {base} does not exist; mount it here, or create it")
    return system, base


def _delete(system: fs.FileSystem, target: str, folder: bool) -> None:
    """Delete a file, or a folder with everything in it; return when it does not exist any more.

    A file that is missing already was deleted by a killed sweep, or by another one. Raises OSError
    if it cannot be deleted.
    """
    if not folder:
        with contextlib.suppress(FileNotFoundError):
            system.delete_file(target)
    elif isinstance(system, fs.LocalFileSystem):
        shutil.rmtree(target, onerror=_unless_gone)
    else:
        # A call that stops at a file which another sweep has deleted in the meantime may leave all
        # other files.
        for tried in range(_TRIES):
            time.sleep(_PAUSE * tried)  # so that the other sweep comes to its end
            if system.get_file_info(target).type == fs.FileType.NotFound:
                return
            with contextlib.suppress(FileNotFoundError):
                system.delete_dir(target)
        raise OSError(f"it still exists after {_TRIES} tries, because others write there")


def _unless_gone(_call: object, _path: str, raised: tuple[object, BaseException, object]) -> None:
    # pyarrow's own function for local folders stops at the first file that is missing.
    if not isinstance(raised[1], FileNotFoundError):
        raise raised[1]


def _rmdir(system: fs.FileSystem) -> Callable[[str], None] | None:
    """Return a function that removes a folder only if it is empty.

    None for other file systems of pyarrow: they delete a folder with everything in it, or a folder
    is only a part of names.
    """
    if isinstance(system, fs.LocalFileSystem):
        return _remove_local
    if isinstance(system, fs.PyFileSystem):
        remove: Callable[[str], None] = system.handler.remove_empty
        return remove
    return None


def _remove_local(folder: str) -> None:
    # Hadoop writes checksums beside local files. Nothing else refers to them.
    names = {*os.listdir(folder)}
    for name in names:
        if name.startswith(".") and name.endswith(".crc") and name[1:-4] not in names:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(f"{folder}/{name}")
    os.rmdir(folder)


def _remove_empty(folders: Mapping[str, Callable[[str], None]]) -> None:
    """Remove folders that are empty, and those above them, up to that of their transaction, batch
    or version."""
    while folders:
        above: dict[str, Callable[[str], None]] = {}
        for folder, remove in folders.items():
            if not MADE.search(folder):
                continue
            # A folder with files stays. The folder above a missing one may be empty now.
            with contextlib.suppress(OSError):
                with contextlib.suppress(FileNotFoundError):
                    remove(folder)
                above[os.path.dirname(folder)] = remove
        folders = above
