"""Say why Spark could not read a file of the warehouse."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote, urlsplit

from pyspark.errors import AnalysisException

from weir.adjunct.versions import recorded_file
from weir.controller.absent_files import why_unread
from weir.database.connection import Database
from weir.errors import Unavailable, WeirError, chain
from weir.settings import Settings
from weir.spark.failures.full_disks import full_disk
from weir.spark.failures.unreadable import file_of, first_cause
from weir.warehouse.filesystem import filesystem


def of_warehouse(database: Database, settings: Settings, error: BaseException) -> WeirError | None:
    """Return what it means that Spark failed at a file of the warehouse (see `why_unread`), or that
    a disk took nothing more (see `full_disk`); None if the error, and those that led to it, say
    neither, or if it says so itself."""
    if isinstance(error, Unavailable):
        return None
    for one in chain(error):
        file = _absent_in_plan(one) if isinstance(one, AnalysisException) else file_of(one)
        path = _below(settings.warehouse, file) if file else ""
        if path:
            found = database.transaction(partial(recorded_file, path=path))
            reason = OSError(first_cause(one))
            return why_unread(database, settings.warehouse, path, reason, found)
    return full_disk(error)


def _below(warehouse: str, file: str) -> str:
    """Return the path of a file below the warehouse, empty for a file that is elsewhere."""
    _, base = filesystem(warehouse)
    parts = urlsplit(file)
    for name in (parts.path, parts.netloc.rpartition("@")[2] + parts.path):
        if name.startswith(f"{base.rstrip('/')}/"):
            return name[len(base.rstrip("/")) + 1 :]
    return ""


def _absent_in_plan(error: AnalysisException) -> str:
    """Return the file that Spark did not find while it planned; empty if it was something else."""
    if error.getCondition() != "PATH_NOT_FOUND":
        return ""
    return unquote(str((error.getMessageParameters() or {}).get("path", "")))


@contextmanager
def saying_why(database: Database, settings: Settings) -> Iterator[None]:
    """Run a block in which Spark reads files of the warehouse; raise what `of_warehouse` returns in
    the place of an error that it explains."""
    try:
        yield
    except Exception as error:
        if lost := of_warehouse(database, settings, error):
            raise lost from error
        raise
