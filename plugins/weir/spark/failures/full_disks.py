"""Say which disk takes nothing more: that of the warehouse, of an output, of Spark, or another."""

import ast
import errno
import os
import re
import tempfile
from collections.abc import Iterator
from traceback import extract_tb
from typing import Any, NamedTuple

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PythonException

from weir.consumers.own_frames import place_in_worker, place_of
from weir.errors import Unavailable, WeirError, chain
from weir.settings import Settings
from weir.spark.failures.unreadable import causes_of, condition_of, jvm_has_ended
from weir.warehouse.filesystem import FULL, disk_full, filesystem, state_of_disk

_SAID = "|".join(map(os.strerror, FULL))
_READ_ONLY = os.strerror(errno.EROFS)
# How Python writes such an error, with the file if it is known, in the text of a worker's.
_OF_WORKER = re.compile(
    rf"""\[Errno \d+\] (?P<said>{_SAID})(: (?P<file>'(\\.|[^'\\])*'|"(\\.|[^"\\])*"))?"""
)
_IN_QUOTES = re.compile(r"'(/[^']*)'")
# How Java does: `FILE: reason`, `FILE (reason)`, or the reason alone.
_OF_JAVA = re.compile(rf"(?:(?P<file>/.*?)(?:: | \())?(?P<said>{_SAID})")
_SPILLING = re.compile(rf"\[SPILL_OUT_OF_MEMORY\][^\n]*({_SAID})")
_NO_FOLDER = re.compile(
    r"(?:Mkdirs failed to create|Unable to clear \w+ directory) (\S.*?)(?: \(exists=| prior to|$)"
)
_SPARKS_FOLDER = re.compile(r"/(blockmgr|spark)-[0-9a-f]{8}-[0-9a-f-]+(/|$)")
_JDK = ("java.", "javax.", "jdk.", "sun.")
_PYSPARK = re.compile(r".*/(pyspark|py4j)[^/]*/")


class _Full(NamedTuple):
    """What the system says, and what could not be written, as far as the error says it."""

    said: str
    file: str = ""
    sparks: bool = False  # one of Spark's local files
    code: str = ""  # the user's line that writes


def full_disk(settings: Settings, error: BaseException) -> WeirError | None:
    """Return what it means that a disk is full or read-only; None if the error, and those that led
    to it, do not say so."""
    for one in chain(error):
        found = _of_python(one) if isinstance(one, OSError) else _of_worker(one) or _of_java(one)
        if found is not None:
            return _told(settings, found)
    return None


def without_local_folders(error: BaseException, folders: list[str]) -> WeirError | None:
    """Return what it means that Spark's JVM ended while it started, if it can make nothing in its
    local folders; None if it ended for another reason."""
    if not jvm_has_ended(error):
        return None
    for folder in folders:
        try:
            os.rmdir(tempfile.mkdtemp(dir=folder))
        except OSError as full:
            said = full.strerror or str(full)
            return _of_spark(said, ", ".join(folders))
    return None


def local_folders() -> list[str]:
    """Return the folders on this machine in which Spark keeps what it moves, sorts and caches; none
    if this process has no JVM to ask."""
    jvm: Any = SparkContext._jvm
    if jvm is None:
        return []
    running = SparkContext._active_spark_context
    conf: Any = running._conf if running is not None else SparkConf(_jvm=jvm)
    try:
        folders = jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(conf._jconf)
        return [str(folder) for folder in folders]
    except (Py4JError, OSError):  # it has ended
        return []


def _of_python(error: OSError) -> _Full | None:
    if error.errno not in FULL:
        return None
    said = os.strerror(error.errno)
    named = error.filename if isinstance(error.filename, str | bytes) else ""
    quoted = _IN_QUOTES.search(str(error))  # pyarrow names the file only there
    file = os.fsdecode(named) or (quoted[1] if quoted else "")
    if file:
        return _Full(said, file, bool(_SPARKS_FOLDER.search(file)))
    frames = extract_tb(error.__traceback__)
    sparks = bool(frames) and bool(_PYSPARK.match(frames[-1].filename))
    return _Full(said, sparks=sparks, code="" if sparks else place_of(error))


def _of_worker(error: BaseException) -> _Full | None:
    if not isinstance(error, PythonException):
        return None
    found = _OF_WORKER.search(str(error))
    if found is None:
        return None
    file = os.fsdecode(ast.literal_eval(found["file"])) if found["file"] else ""
    code = "" if file else place_in_worker(str(error))
    # A worker writes nothing else without a word about where than what Spark moves.
    return _Full(found["said"], file, not file and not code, code)


def _of_java(error: BaseException) -> _Full | None:
    causes = list(causes_of(error))
    written = ""
    for java in causes:
        name, message = str(java.getClass().getName()), str(java.getMessage() or "")
        if condition_of(java) == "TASK_WRITE_FAILED":
            written = _plain(str(java.getMessageParameters().get("path") or ""))
        if spilling := _SPILLING.search(message):
            return _Full(spilling[1], sparks=True)
        if (made := _NO_FOLDER.search(message)) and (said := _why_not_made(_plain(made[1]))):
            return _Full(said, _plain(made[1]))
        if not name.startswith(("java.io.", "java.nio.", "org.apache.hadoop.")):
            continue
        if found := _OF_JAVA.search(message):
            return _Full(found["said"], found["file"] or written, _is_sparks(causes[-1]))
    return None


def _is_sparks(java: Any) -> bool:
    """Return whether Spark itself, and not Hadoop or a function for it, called what failed."""
    for frame in java.getStackTrace():
        called = str(frame.getClassName())
        if not called.startswith(_JDK):
            return called.startswith("org.apache.spark.")
    return False


def _why_not_made(folder: str) -> str:
    """Return why nothing can be made at a path on this machine, if its disk is the cause: Hadoop
    says only that it was not made."""
    while folder and not os.path.exists(folder):
        folder = os.path.dirname(folder) if folder != "/" else ""
    if not folder:
        return ""
    disk = os.statvfs(folder)
    if disk.f_flag & os.ST_RDONLY:
        return _READ_ONLY
    full = not disk.f_bavail or (disk.f_files and not disk.f_favail)
    return os.strerror(errno.ENOSPC) if full else ""


def _plain(path: str) -> str:
    """Return a path of Hadoop's as the system has it, if it is local."""
    return re.sub("^file:/+", "/", path)


def _told(settings: Settings, full: _Full) -> WeirError:
    if full.sparks:
        return _of_spark(full.said, ", ".join(local_folders()))
    if full.file:
        whose = f"the disk of {full.file}"
        for what, root in _roots(settings):
            if _is_below(root, full.file):
                whose = f"the disk of the {what} {root}"
    elif full.code:
        whose = f"a disk to which {full.code} writes"
    else:
        state, remedy = state_of_disk(full.said)
        return Unavailable(
            "disk_full",
            f"a disk {state} ({full.said}), and nothing says which: look at those of the warehouse "
            f"{settings.warehouse}, of outputs and of Spark's local folders (spark.local.dir); "
            f"{remedy}, then try again.",
        )
    return disk_full(whose, full.said)


def _of_spark(said: str, folders: str) -> WeirError:
    state, remedy = state_of_disk(said)
    return Unavailable(
        "disk_full",
        f"the disk of Spark's local folders ({folders or 'spark.local.dir'}) {state} ({said}); "
        f"{remedy}, or name folders on another disk in spark.local.dir, then try again.",
    )


def _roots(settings: Settings) -> Iterator[tuple[str, str]]:
    yield from (("output root", root) for root in settings.output_roots)
    yield "warehouse", settings.warehouse


def _is_below(root: str, file: str) -> bool:
    if "://" in root and not root.startswith("file:"):
        return file.startswith(f"{root.rstrip('/')}/")
    _, base = filesystem(root)
    bases = {base.rstrip("/"), os.path.realpath(base)}
    return any(f"{path}/".startswith(f"{b}/") for path in (file, os.path.realpath(file))
               for b in bases)  # fmt: skip
