"""Files that can't be read: Spark says so in the middle of an append, deep in Java. Here its cause
becomes one sentence that names the file, and says whether to try again."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote

import pyarrow.parquet as pq
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from weir.errors import InvalidInput, WeirError
from weir.warehouse.filesystem import filesystem

_PIECE = 16 << 20
_CLASS = re.compile(r"[\w.$]*(Exception|Error): |@[0-9a-f]{6,}")
LONGEST = 300  # characters of an error that are repeated in a sentence


class UnreadableFile(WeirError):
    """A file that is in order could not be read: its storage may be back later."""

    retryable = True


def first_cause(error: BaseException) -> str:
    """What is behind an error of Java's or Spark's, in one line; others as they are."""
    causes = list(_causes(error))
    if not causes:
        return one_line(str(error)) or type(error).__name__
    said = one_line(str(causes[-1].getMessage() or ""))
    return said or str(causes[-1].getClass().getSimpleName())


def one_line(said: str) -> str:
    """The first line of what another program says, without the classes of its errors."""
    first = (said.strip().splitlines() or [""])[0]
    printable = "".join(c if c.isprintable() else "?" for c in first)
    return _CLASS.sub("", printable)[:LONGEST].rstrip(". ")


@contextmanager
def naming_files(root: str, paths: list[str], format_: str) -> Iterator[None]:
    """A block in which Spark reads these files below a root: raises InvalidInput naming the one
    that is damaged, UnreadableFile for one that could only not be read now."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        file = _file_of(error)
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
    """The Java exceptions behind an error, the innermost last."""
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


def _file_of(error: BaseException) -> str | None:
    """The file that Spark names as the one it could not read."""
    for java in _causes(error):
        try:
            if str(java.getCondition() or "").startswith("FAILED_READ_FILE"):
                return unquote(str(java.getMessageParameters().get("path")))
        except Py4JError:  # an exception of somebody else's has no condition
            continue
    return None


def damage_of(root: str, path: str, format_: str) -> str | None:
    """What another reader says of the whole file; None when it can be read, or not at all now."""
    system, base = filesystem(root)
    try:
        if format_ == "parquet":
            with system.open_input_file(f"{base}/{path}") as source:
                _exhaust(pq.ParquetFile(source).iter_batches())
        else:
            with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
                _exhaust(iter(lambda: source.read(_PIECE), b""))
    except (OSError, ValueError, NotImplementedError) as error:  # those of pyarrow are among them
        try:
            with system.open_input_stream(f"{base}/{path}", compression=None) as source:
                _exhaust(iter(lambda: source.read(_PIECE), b""))
        except OSError:  # the storage is away: that says nothing of the file
            return None
        return one_line(str(error)) or type(error).__name__
    return None


def _exhaust(pieces: Iterator[Any]) -> None:
    deque(pieces, maxlen=0)


def damaged(path: str, damage: str) -> InvalidInput:
    """The refusal of such a file."""
    return InvalidInput(
        "file_damaged",
        f"the input file {path!r} is damaged ({damage}), so nothing was appended; check that it "
        "was copied completely, or write it again.",
    )
