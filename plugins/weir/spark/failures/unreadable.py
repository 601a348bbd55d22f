"""Input files that cannot be read. Spark fails in the middle of an append, deep in Java; here the
cause becomes one sentence that names the file, and a class that says whether a retry may help."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkException

from weir.errors import InvalidInput
from weir.inputs.unreadable import UnreadableFile, damage_of, damaged, one_line, stored

# Java's errors that come from the content of a file, by their innermost cause.
_FROM_FILES = ("java.lang.", "java.util.", "java.nio.Buffer", "org.apache.parquet.",
               "shaded.parquet.", "org.apache.spark.sql.", "org.apache.spark.Spark")  # fmt: skip
_NOT_FROM_FILES = {"java.lang.OutOfMemoryError", "java.lang.InterruptedException",
                   "java.util.concurrent.TimeoutException"}  # fmt: skip
# Java's answer would follow. Of a JVM that answers, each name without a dot is a package at least.
_NO_ANSWER = re.compile(r"An error occurred while calling \S+|\w+ does not exist in the JVM")
_MOST_SUSPECTS = 100  # files that are read again, one by one, if nobody says which failed


def first_cause(error: BaseException) -> str:
    """Return the innermost cause of an error of Java or Spark, in one line; other errors as they
    are."""
    if jvm_has_ended(error):
        return (
            "Spark's JVM has ended: killed, without memory (spark.driver.memory), or without a disk "
            "to write to (spark.local.dir); the log has its last lines"
        )
    causes = list(causes_of(error))
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
        if isinstance(one, Py4JError) and _NO_ANSWER.fullmatch(str(one)):
            return True
        if isinstance(one, Py4JNetworkError):
            return True
        if isinstance(one, BrokenPipeError) and _submitter_has_ended():
            return True
        trace = one.__traceback__ if isinstance(one, ConnectionError) else None
        while trace is not None:
            if trace.tb_frame.f_globals.get("__name__", "").startswith("py4j."):
                return True
            trace = trace.tb_next
        one = one.__cause__ or one.__context__
    return False


def _submitter_has_ended() -> bool:
    """Return whether spark-submit has started this process and its JVM, which reads what this one
    prints, is gone."""
    port = os.environ.get("PYSPARK_GATEWAY_PORT")
    if port is None:
        return False
    try:
        socket.create_connection(("127.0.0.1", int(port)), 5.0).close()
    except OSError:
        return True
    return False


@contextmanager
def naming_files(root: str, paths: list[str], format_: str) -> Iterator[None]:
    """Run a block in which Spark reads these files below a root.

    Raises InvalidInput naming a file that is damaged or that Spark will never read, UnreadableFile
    for a file that could not be read now.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        file = file_of(error)
        if file is not None:
            suspects = [next((p for p in paths if file.endswith("/" + p)), file)]
        elif format_ == "parquet" and _worker_ended(error):
            suspects = paths[:_MOST_SUSPECTS]
        else:
            raise
        for one in suspects:
            if (damage := damage_of(root, one, format_)) is not None:
                raise damaged(one, damage) from None
        if file is None:
            raise
        which = f"the input file {suspects[0]!r}"
        if _is_final(error) and all(stored(root, one) for one in suspects):
            raise InvalidInput(
                "file_invalid",
                f"Spark can't read {which} ({first_cause(error)}), so nothing was "
                "appended; write it again with other settings, such as the defaults of its writer.",
            ) from None
        raise UnreadableFile(
            "file_unreadable",
            f"{which} can't be read now ({first_cause(error)}), so nothing was "
            "appended; try again when its storage is available.",
        ) from None


def causes_of(error: BaseException) -> Iterator[Any]:
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
    for java in causes_of(error):
        if condition_of(java).startswith("FAILED_READ_FILE"):
            return unquote(str(java.getMessageParameters().get("path")))
    return None


def condition_of(java: Any) -> str:
    """Return the error condition of a Java exception; empty for one that is not Spark's."""
    try:
        return str(java.getCondition() or "")
    except Py4JError:  # it has no such method
        return ""


def _worker_ended(error: BaseException) -> bool:
    """Return whether a Python worker ended in the middle of a task: pyarrow ends its process at
    some damaged files."""
    return any("Python worker exited" in str(one.getMessage() or "") for one in causes_of(error))


def _is_final(error: BaseException) -> bool:
    """Return whether an error comes from what the file has, and not from its storage or memory."""
    causes = [(str(c.getClass().getName()), str(c.getMessage() or "")) for c in causes_of(error)]
    if not causes:
        return False
    name, message = causes[-1]
    if name in _NOT_FROM_FILES:
        return False
    return name.startswith(_FROM_FILES) or "org.apache.parquet.format" in message
