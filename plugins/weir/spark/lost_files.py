"""Say why Spark could not read a file of the warehouse."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from urllib.parse import unquote

from pyspark.errors import AnalysisException

from weir.adjunct.versions import recorded_file
from weir.controller.absent_files import why_unread
from weir.database.connection import Database
from weir.errors import WeirError, chain
from weir.spark.unreadable import file_of, first_cause
from weir.warehouse.filesystem import filesystem


def of_warehouse(database: Database, warehouse: str, error: BaseException) -> WeirError | None:
    """Return what it means that Spark failed at a file of the warehouse (see `why_unread`); None if
    the error, and those that led to it, name no such file."""
    for one in chain(error):
        file = _absent_in_plan(one) if isinstance(one, AnalysisException) else file_of(one)
        if not file:
            continue
        _, base = filesystem(warehouse)
        _, below, path = file.partition(f"{base.rstrip('/')}/")
        if below:
            found = database.transaction(partial(recorded_file, path=path))
            return why_unread(database, warehouse, path, OSError(first_cause(one)), found)
    return None


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
