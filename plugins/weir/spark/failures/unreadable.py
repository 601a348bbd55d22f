"""What errors of Spark's JVM say: their causes, the file that was not read, and that it ended."""

import os
import re
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkAssertionError, PySparkException

from weir.inputs.unreadable import damage_of, damaged, one_line

# Java's answer would follow. Of a JVM that answers, each name without a dot is a package at least.
_NO_ANSWER = re.compile(r"An error occurred while calling \S+|\w+ does not exist in the JVM")
_MOST_SUSPECTS = 100  # files that are read again, one by one, if nobody says which failed


class JavaClass(Protocol):
    """A class of Java."""

    def getName(self) -> str: ...
    def getSimpleName(self) -> str: ...


class JavaError(Protocol):
    """An exception of Java; the last two methods are of those of Spark."""

    def getMessage(self) -> str | None: ...
    def getCause(self) -> "JavaError | None": ...
    def getClass(self) -> JavaClass: ...
    def getCondition(self) -> str | None: ...
    def getMessageParameters(self) -> Mapping[str, str]: ...


def first_cause(error: BaseException) -> str:
    """Return the innermost cause of an error of Java or Spark, in one line; other errors as they
    are."""
    if server_has_ended(error):
        return (
            "the Spark that this works with has ended, was started again, or can't be reached; its "
            "log has its last lines"
        )
    if jvm_has_ended(error):
        return (
            "Spark's JVM has ended: killed, out of memory (spark.driver.memory), or has no disk "
            "to write to (spark.local.dir); the log has its last lines"
        )
    causes = list(causes_of(error))
    if not causes:
        return one_line(str(error)) or type(error).__name__
    message = one_line(str(causes[-1].getMessage() or ""))
    return message or str(causes[-1].getClass().getSimpleName())


def server_has_ended(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, says that a server of Spark Connect is gone,
    or knows the session no more."""
    return any(map(_of_server, _chain(error)))


def _of_server(error: BaseException) -> bool:
    if isinstance(error, PySparkAssertionError):  # another one answers
        return "session" in str(error).lower()
    if isinstance(error, PySparkException):
        known = str(error.getCondition() or "")
        lost = known.startswith("INVALID_HANDLE") or known == "NO_ACTIVE_SESSION"
        return lost or "StatusCode.UNAVAILABLE" in str(error)
    return type(error).__module__.startswith("grpc.") and "StatusCode.UNAVAILABLE" in str(error)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those that led to it."""
    one: BaseException | None = error
    seen: set[int] = set()
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or one.__context__


def jvm_has_ended(error: BaseException) -> bool:
    """Return whether an error, or one that led to it, says that the JVM of this process is gone, or
    that of the server it works with."""
    for one in _chain(error):
        if _of_server(one):
            return True
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
    """Run a block in which tasks read these files below a root. Raises InvalidInput naming a
    damaged one, if pyarrow has ended the process of a task at it, and so nobody says which."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        causes = (str(one.getMessage() or "") for one in causes_of(error))
        if format_ == "parquet" and any("Python worker exited" in said for said in causes):
            for one in paths[:_MOST_SUSPECTS]:
                if (damage := damage_of(root, one, format_)) is not None:
                    raise damaged(one, damage) from None
        raise


def causes_of(error: BaseException) -> Iterator["JavaError"]:
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
    # Over Spark Connect there is no Java.
    if isinstance(error, PySparkException) and "FAILED_READ_FILE" in str(error.getCondition()):
        return unquote(str((error.getMessageParameters() or {}).get("path")))
    return None


def condition_of(java: "JavaError") -> str:
    """Return the error condition of a Java exception; empty for one that is not Spark's."""
    try:
        return str(java.getCondition() or "")
    except Py4JError:  # it has no such method
        return ""
