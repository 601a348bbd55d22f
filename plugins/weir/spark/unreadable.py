"""Input files that cannot be read. Spark fails in the middle of an append, deep in Java; here the
cause becomes one sentence that names the file, and a class that says whether a retry may help."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from weir.errors import InvalidInput, WeirError
from weir.warehouse.filesystem import filesystem

_PIECE = 16 << 20
_CLASS = re.compile(r"[\w.$]*(Exception|Error): |@[0-9a-f]{6,}")
LONGEST = 300  # characters of another error that a sentence quotes


class UnreadableFile(WeirError):
    """An undamaged file could not be read. Its storage may be available again later."""

    retryable = True


def first_cause(error: BaseException) -> str:
    """Return the innermost cause of an error of Java or Spark, in one line; other errors as they
    are."""
    if jvm_has_ended(error):
        return (
            "Spark's JVM has ended: it was killed, or used up its memory (spark.driver.memory); "
            "the log has its last lines"
        )
    causes = list(_causes(error))
    if not causes:
        return one_line(str(error)) or type(error).__name__
    message = one_line(str(causes[-1].getMessage() or ""))
    return message or str(causes[-1].getClass().getSimpleName())


def jvm_has_ended(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, says that the JVM of this process is gone."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        if isinstance(one, Py4JNetworkError):
            return True
        trace = one.__traceback__ if isinstance(one, ConnectionError) else None
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith("py4j."):
                return True
            trace = trace.tb_next
        one = one.__cause__ or one.__context__
    return False


def one_line(message: str) -> str:
    """Return the first line of another program's message, without class names of errors."""
    first = (message.strip().splitlines() or [""])[0]
    printable = "".join(c if c.isprintable() else "?" for c in first)
    return _CLASS.sub("", printable)[:LONGEST].rstrip(". ")


@contextmanager
def naming_files(root: str, paths: list[str], format_: str) -> Iterator[None]:
    """Run a block in which Spark reads these files below a root.

    Raises InvalidInput naming a damaged file, UnreadableFile for a file that could not be read now.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        file = file_of(error)
        if file is None:
            raise
        path = next((p for p in paths if file.endswith("/" + p)), file)
        if (damage := damage_of(root, path, format_)) is not None:
            raise damaged(path, damage) from None
        raise UnreadableFile(
            "file_unreadable",
            f"the input file {path!r} can't be read now ({first_cause(error)}), so nothing was "
            "appended; try again when its storage is available.",
        ) from None


def _causes(error: BaseException) -> Iterator[Any]:
    """Yield the Java exceptions behind an error, the innermost last."""
    java = (
        error.java_exception
        if isinstance(error, Py4JJavaError)
        else getattr(error, "_origin", None)
    )
    if isinstance(java, Py4JJavaError):
        java = java.java_exception
    while java is not None:
        yield java
        java = java.getCause()


def file_of(error: BaseException) -> str | None:
    """Return the file that Spark could not read, as its error names it."""
    for java in _causes(error):
        try:
            if str(java.getCondition() or "").startswith("FAILED_READ_FILE"):
                return unquote(str(java.getMessageParameters().get("path")))
        except Py4JError:  # an exception that is not Spark's has no condition
            continue
    return None


def damage_of(root: str, path: str, format_: str) -> str | None:
    """Return what another reader says is wrong with the file. Return None if it can read the whole
    file, or if the storage is not available now."""
    system, base = filesystem(root)
    try:
        if format_ == "parquet":
            with system.open_input_file(f"{base}/{path}") as source:
                _exhaust(pq.ParquetFile(source).iter_batches())
        else:
            with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
                _exhaust(iter(lambda: source.read(_PIECE), b""))
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are among these
        try:
            with system.open_input_stream(f"{base}/{path}", compression=None) as source:
                _exhaust(iter(lambda: source.read(_PIECE), b""))
        except OSError:  # the storage is not available, so nothing is known about the file
            return None
        return one_line(str(error)) or type(error).__name__
    return None


def _exhaust(pieces: Iterator[Any]) -> None:
    deque(pieces, maxlen=0)


def damaged(path: str, damage: str) -> InvalidInput:
    """Return the error for a damaged file."""
    return InvalidInput(
        "file_damaged",
        f"the input file {path!r} is damaged ({damage}), so nothing was appended; check that it "
        "was copied completely, or write it again.",
    )
