"""What a failure means: whether what the events hold may be its cause, and how it is said.

What is not known to be of the events is not: an outage, a full disk, a missing right, a file that
is gone or a mistake in the program's text are the same for every event, and none would be left.
"""

import builtins
import importlib
import re
import sys
from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PythonException
from sqlalchemy import exc

from weir.errors import BadRows, WeirError, is_mistake
from weir.reader_groups.refused_rows import of_rows

LONGEST = 500  # characters of an error that are repeated in a sentence
# Spark's SQLSTATEs: data, constraints, raise_error and assert_true.
_OF_EVENTS = re.compile(r"22|23|P0001")
# A function in Java that failed; the JVM's exceptions behind it say for what.
_JAVA_FUNCTION = "FAILED_EXECUTE_UDF"
_NOT_THE_EVENTS_IN_JAVA = {
    "java.io.IOException",
    "java.sql.SQLException",
    "java.util.concurrent.TimeoutException",
    "java.lang.ReflectiveOperationException",  # a class that is not there
    "java.lang.Error",
}
# Libraries whose exceptions are no OSError say in a class's name that something is away: those of
# databases by PEP 249, those of services mostly thus.
_SAYS_AWAY = re.compile(
    r"(Interface|Internal|NotSupported|Operational|Programming)Error"
    r"|.*(Connect|Time(d)?_?out|Unavailable)\w*",
    re.IGNORECASE,
)
_TRACEBACK = "Traceback (most recent call last):"
_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::|$)")
# With this off, Spark also says what an exception was raised from.
WHOLE_TRACEBACKS = {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"}


def caused_by_events(error: BaseException) -> bool:
    """Whether fewer events may do without this failure: neither it nor one that led to it is known
    to have another cause, nor of a kind that is not known."""
    return all(_of_events(one) for one in _chain(error))


def is_programs(error: Exception) -> bool:
    """Whether it is a mistake in the program's text, here or on the executors."""
    if not isinstance(error, PythonException):
        return is_mistake(error)
    found = _classes(error)
    return bool(found) and found[-1] is not None and is_mistake(found[-1])


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it was raised from, or while handling what."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        if isinstance(one, (PySparkException, BadRows)):  # behind it is what carried it here
            return
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def _of_events(error: BaseException) -> bool:
    if isinstance(error, exc.DBAPIError):
        return False  # those of the tables that a batch writes to are BadRows by now
    if isinstance(error, PythonException):
        classes = _classes(error)
        return bool(classes) and all(found and _class_of_events(found) for found in classes)
    if isinstance(error, PySparkException):
        if error.getCondition() == _JAVA_FUNCTION:
            return not _NOT_THE_EVENTS_IN_JAVA & set(_java_classes(error))
        return bool(_OF_EVENTS.match(error.getSqlState() or ""))
    state = getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)
    if isinstance(state, str):  # of a driver for Postgres, used by the function
        return of_rows(state)
    return _class_of_events(type(error))


def _class_of_events(found: type) -> bool:
    """Whether exceptions of a class may be the events' fault."""
    if issubclass(found, BadRows):
        return True
    if not issubclass(found, Exception) or is_mistake(found):
        return False
    if issubclass(found, (WeirError, OSError, MemoryError, Py4JError, PySparkException)):
        return False
    return not any(_SAYS_AWAY.fullmatch(parent.__name__) for parent in found.__mro__)


def sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, PythonException):
        said = next(reversed(_raised(error)), "")
    else:
        said = error.sentence if isinstance(error, WeirError) else str(error).strip()
        if not isinstance(error, (WeirError, PySparkException)):
            said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (said.splitlines() or [type(error).__name__])[0][:LONGEST]


def _raised(error: PythonException) -> list[str]:
    """What a Python worker raised, after what that was raised from: of each traceback the line
    that names the exception, the first one after it that is not indented."""
    lines = iter(str(error).splitlines())
    found = [
        line
        for header in lines
        if header == _TRACEBACK
        if (line := next((after for after in lines if after and not after.startswith(" ")), ""))
    ]
    return found or str(error).splitlines()[1:2]  # hideTraceback: one line after Spark's own


def _classes(error: PythonException) -> list[type | None]:
    names = [_NAME.match(line) for line in _raised(error)]
    return [_class_named(name[1]) if name else None for name in names]


def _class_named(name: str) -> type | None:
    """The class of an exception that a worker named; None where it is not known here."""
    module, _, rest = name.rpartition(".")
    if not module:
        given = getattr(builtins, name, None) or getattr(sys.modules["__main__"], name, None)
        return given if isinstance(given, type) else None
    while module:
        try:
            found: Any = importlib.import_module(module)
        except Exception:  # the end of the name may be a class in a class
            module, _, part = module.rpartition(".")
            rest = f"{part}.{rest}"
            continue
        for part in rest.split("."):
            found = getattr(found, part, None)
        return found if isinstance(found, type) else None
    return None


def _java_classes(error: PySparkException) -> Iterator[str]:
    """The names of the classes, and of those above them, of what the JVM threw, with its causes."""
    one = getattr(error, "_origin", None)
    while one is not None:
        found = one.getClass()
        while found is not None:
            yield found.getName()
            found = found.getSuperclass()
        one = one.getCause()
