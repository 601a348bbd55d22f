"""The file system of a root: pyarrow's, or Hadoop's if this process has a JVM; and what it
means that it refuses."""

import errno
import os
from functools import lru_cache

import pyarrow as pa
from pyarrow import fs

from weir.errors import InvalidInput, Unavailable

_OBJECTS = ("s3", "gcs", "abfs")  # object stores, as pyarrow names them
# What the system says of a disk that takes nothing more, or is read-only.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def filesystem(root: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a root (a local path or a URI), and the root's path in it.

    It is pyarrow's, or Hadoop's in the form of pyarrow's. Raises InvalidInput for a root that
    neither supports.
    """
    if "://" not in root:
        return fs.LocalFileSystem(), root.rstrip("/")
    ways = [_by_pyarrow, _by_hadoop]
    if root.startswith(("hdfs://", "viewfs://")):
        # For these, pyarrow would start a second JVM, and its renaming replaces no file.
        ways.reverse()
    reasons = []
    for way in ways:
        try:
            found, path = way(root)
            return found, path.rstrip("/")
        except (pa.ArrowInvalid, OSError) as error:
            by = "pyarrow" if way is _by_pyarrow else "Hadoop"
            reasons.append(f"by {by}: " + str(error).partition("\n")[0])
    raise InvalidInput(
        "setting_invalid",
        f"{root!r} can't be opened ({', '.join(reasons)}); use a folder or a URI with file, s3a, "
        "gs or abfss. File systems that only Hadoop can open need a job under spark-submit, or a "
        "program with a Spark session, that has their jars and settings.",
    )


def is_s3(root: str) -> bool:
    """Return whether a root is on S3."""
    return root.startswith(("s3://", "s3a://"))


def needs_hadoop(root: str) -> bool:
    """Return whether a root can be opened only in a process with a JVM, and this one has none."""
    scheme, _, below = root.partition("://")
    if not below or scheme in ("file", "s3", "s3a", "gs", "gcs", "abfs", "abfss"):
        return False
    try:
        filesystem(root)
    except InvalidInput:
        return not _has_jvm()
    return False


def make_folder(system: fs.FileSystem, path: str) -> None:
    """Make a folder, and those above it, where files need one. In an object store a folder would
    be an empty object, which stays when nothing is left below it."""
    if system.type_name not in _OBJECTS:
        system.create_dir(path, recursive=True)


def replaces(system: fs.FileSystem) -> bool:
    """Return whether a file that is written replaces the one before in one step, when it is
    whole. Elsewhere it has to be written under another name and renamed."""
    return system.type_name in ("s3", "gcs")


def only_by_jvm(root: str) -> bool:
    """Return whether only a process with a JVM reaches the files below a root. Of a root that can't
    be opened nothing is known: the same error is raised for each of its files."""
    try:
        return isinstance(filesystem(root)[0], fs.PyFileSystem)
    except InvalidInput:
        return False


def _by_pyarrow(root: str) -> tuple[fs.FileSystem, str]:
    if is_s3(root):
        login = frozenset((k, v) for k, v in os.environ.items() if k.startswith("AWS_"))
        return _s3(root.replace("s3a://", "s3://", 1), login, os.getpid())
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(root)
    return found


@lru_cache(8)
def _s3(root: str, _login: frozenset[tuple[str, str]], _pid: int) -> tuple[fs.FileSystem, str]:
    """Return the file system of a root on S3, which has its connections and its login."""
    # So that a small file is one request, and not the three of an upload in parts.
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(
        f"{root}{'&' if '?' in root else '?'}allow_delayed_open=true"
    )
    return found


def _has_jvm() -> bool:
    try:
        from weir.warehouse.hadoop import has_jvm
    except ImportError:  # pyspark is missing in some processes
        return False
    return has_jvm()


def _by_hadoop(root: str) -> tuple[fs.FileSystem, str]:
    try:
        from weir.warehouse.hadoop import filesystem as of_hadoop
    except ImportError as error:  # pyspark is missing in some processes
        raise OSError(f"this process has no JVM ({error})") from None
    return of_hadoop(root)


def not_writable(root: str, error: OSError, *, is_output: bool = False) -> Unavailable:
    """Return the error for a root that takes no files now, of what its storage says."""
    if error.errno in FULL:
        what = "output root" if is_output else "warehouse"
        return disk_full(os.strerror(error.errno), f"of the {what} {root}")
    said = _first_line(error).removeprefix(f"[Errno {error.errno}] ")
    if is_output:
        return Unavailable(
            "output_not_writable",
            f"the output root {root} can't be written ({said}); see to its rights and its storage, "
            "then try again.",
        )
    return Unavailable(
        "warehouse_not_writable",
        f"the warehouse {root} can't be written ({said}); see to its rights and its storage, then "
        "try again.",
    )


def disk_full(said: str, whose: str = "") -> Unavailable:
    """Return the error for a disk that takes nothing more, or is read-only. `said`: what the system
    says; `whose`: as "of ...", if it is known."""
    which = whose or "of the warehouse, an output, a function or Spark (spark.local.dir)"
    return Unavailable(
        "disk_full",
        f"a disk {which} takes nothing more ({said}); free space there, or let it be written, then "
        "try again.",
    )


def not_readable(root: str, reason: object) -> Unavailable:
    """Return the error for a root whose storage does not answer. `reason`: what it says."""
    return Unavailable(
        "warehouse_unreadable",
        f"the warehouse {root} can't be read now ({_first_line(reason)}); see to its storage "
        "and its rights, and try again when it is available.",
    )


def _first_line(reason: object) -> str:
    return (str(reason).strip().splitlines() or ["no reason was given"])[0].rstrip(".")
