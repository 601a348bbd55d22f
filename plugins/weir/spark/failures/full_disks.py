"""Find in an error, in this process or of Spark, that a disk takes nothing more."""

import os
import re
from collections.abc import Iterator

from pyspark.errors import PythonException

from weir.errors import WeirError, chain
from weir.spark.failures.unreadable import causes_of
from weir.warehouse.filesystem import FULL, disk_full

_SAID = "|".join(map(os.strerror, FULL))
# How Python writes it in the text of a worker's error; a line of Java's messages.
_OF_WORKER = re.compile(rf"\[Errno \d+\] (?:{_SAID})[^\n]*")
_OF_JAVA = re.compile(rf"[^\n]*(?:{_SAID})[^\n]*")
# Not what a database says of its own disk.
_SYSTEMS = ("java.io.", "java.nio.", "org.apache.hadoop.", "org.apache.spark.")


def full_disk(error: BaseException) -> WeirError | None:
    """Return what it means that a disk is full or read-only; None if the error, and those that led
    to it, do not say so."""
    said = next((said for one in chain(error) for said in _sayings(one)), None)
    return None if said is None else disk_full(said)


def _sayings(error: BaseException) -> Iterator[str]:
    """Yield what an error says of a full disk, with the file if it says it."""
    if isinstance(error, OSError) and error.errno in FULL:
        yield str(error)
    elif isinstance(error, PythonException) and (found := _OF_WORKER.search(str(error))):
        yield found[0]
    for java in causes_of(error):
        found = _OF_JAVA.search(str(java.getMessage() or ""))
        if found and str(java.getClass().getName()).startswith(_SYSTEMS):
            yield found[0].strip()
