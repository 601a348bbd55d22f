"""Say why Spark could not read a file of the warehouse."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException

from weir.adjunct.versions import recorded_file
from weir.controller.absent_files import why_unread
from weir.database.connection import Database
from weir.errors import Unavailable, WeirError, chain
from weir.spark.unreadable import causes_of, file_of, first_cause
from weir.warehouse.filesystem import filesystem

_FULL = re.compile("No space left on device|Disk quota exceeded|Read-only file system")


def of_warehouse(database: Database, warehouse: str, error: BaseException) -> WeirError | None:
    """Return what it means that Spark failed at a file of the warehouse (see `why_unread`), or that
    a disk took nothing more; None if the error, and those that led to it, say neither."""
    for one in chain(error):
        if full := _full(one):
            return Unavailable(
                "disk_full",
                f"a disk takes nothing more ({full}), that of the warehouse {warehouse}, of an "
                "output or of Spark's local folders; free space there, or see to its rights, then "
                "try again.",
            )
        file = _absent_in_plan(one) if isinstance(one, AnalysisException) else file_of(one)
        if not file:
            continue
        path = _below(warehouse, file)
        if path:
            found = database.transaction(partial(recorded_file, path=path))
            return why_unread(database, warehouse, path, OSError(first_cause(one)), found)
    return None


def _below(warehouse: str, file: str) -> str:
    """Return the path of a file below the warehouse, empty for a file that is elsewhere."""
    _, base = filesystem(warehouse)
    parts = urlsplit(file)
    for name in (parts.path, parts.netloc.rpartition("@")[2] + parts.path):
        if name.startswith(f"{base.rstrip('/')}/"):
            return name[len(base.rstrip("/")) + 1 :]
    return ""


def _full(error: BaseException) -> str:
    """Return what a disk says that is full or read-only, to Java or to this process; or nothing."""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
        return error.strerror or str(error)
    for java in causes_of(error):
        name, message = str(java.getClass().getName()), str(java.getMessage() or "")
        if name.startswith(("java.io.", "java.nio.", "org.apache.hadoop.")):
            found = _FULL.search(message)
            if found:
                return found[0]
    return ""


def _absent_in_plan(error: AnalysisException) -> str:
    """Return the file that Spark did not find while it planned; empty if it was something else."""
    if error.getCondition() != "PATH_NOT_FOUND":
        return ""
    return unquote(str((error.getMessageParameters() or {}).get("path", "")))


@contextmanager
def saying_why(database: Database, warehouse: str) -> Iterator[None]:
    """Run a block in which Spark reads files of the warehouse; raise what `of_warehouse` returns in
    the place of an error that it explains."""
    try:
        yield
    except Exception as error:
        if lost := of_warehouse(database, warehouse, error):
            raise lost from error
        raise
