"""Classify failures of Spark and of the functions that it calls: decide whether the events of a
batch may be the cause, and describe the failure (`weir.consumers.failures`).
"""

import builtins
import importlib
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException, PythonException

from weir.consumers import failures
from weir.errors import InvalidInput, WeirError, is_mistake
from weir.spark.failures.unreadable import first_cause, jvm_has_ended

_SPARKS = (Py4JError, PySparkException)  # that events do not cause, unless Spark says so
# Spark's SQLSTATEs: data, constraints, raise_error and assert_true.
_OF_EVENTS = re.compile(r"22|23|P0001")
# A Java function failed; the JVM's exceptions behind this condition say why.
_JAVA_FUNCTION = "FAILED_EXECUTE_UDF"
_NOT_THE_EVENTS_IN_JAVA = {
    "java.io.IOException",
    "java.sql.SQLException",
    "java.util.concurrent.TimeoutException",
    "java.lang.ReflectiveOperationException",  # a class that does not exist
    "java.lang.Error",
}
_TRACEBACK = "Traceback (most recent call last):"
# What Weir needs there; what a function of a program lacks is said by itself.
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '(pyarrow|numpy|xxhash)\b.*")
_OWN = re.compile(r"(weir(?:\.\w+)+): (.*) \[(\w+)\]")  # an error of Weir, as Python prints it
_NAME = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(?::|$)")
# When this is off, Spark's error includes the exceptions from which another was raised.
WHOLE_TRACEBACKS = {"spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false"}


def caused_by_events(error: BaseException) -> bool:
    """Return whether a smaller batch may succeed: whether the error, and every error that led to
    it, is of a kind that events cause."""
    return all(_of_events(one) for one in failures.causes(error, PySparkException))


def is_programs(error: Exception) -> bool:
    """Return whether the error is a mistake in the program's text, in this process or on
    executors."""
    if not isinstance(error, PythonException):
        return is_mistake(error)
    found = _classes(error)
    return bool(found) and found[-1] is not None and is_mistake(found[-1])


def _of_events(error: BaseException) -> bool:
    if isinstance(error, PythonException):
        classes = _classes(error)
        return bool(classes) and all(
            found and failures.class_of_events(found, *_SPARKS) for found in classes
        )
    if isinstance(error, PySparkException):
        if error.getCondition() == _JAVA_FUNCTION:
            return not _NOT_THE_EVENTS_IN_JAVA & set(_java_classes(error))
        return bool(_OF_EVENTS.match(error.getSqlState() or ""))
    return failures.of_events(error, *_SPARKS)


def sentence(error: Exception) -> str:
    """Return what went wrong, in one line."""
    if isinstance(error, PythonException):
        message = next(reversed(_raised(error)), "")
    elif isinstance(error, Py4JJavaError) or jvm_has_ended(error):
        # Its own first line only names an object of this session.
        message = first_cause(error)
    elif isinstance(error, PySparkException):
        message = str(error).strip()
    else:
        return failures.sentence(error)
    return failures.first_line(error, message)


def _own(error: PythonException) -> WeirError | None:
    """Return the error of Weir that a Python worker raised, or what it lacks; None for others."""
    line = next(reversed(_raised(error)), "")
    if lacking := _NO_MODULE.search(line):
        return InvalidInput(
            "executors_lack_package",
            f"the Python of Spark's executors has no package {lacking[1]!r}; install pyarrow, "
            "numpy and xxhash for it, or name a Python that has them by spark.pyspark.python.",
        )
    found = _OWN.fullmatch(line)
    kind = _class_named(found[1]) if found else None
    if found is None or kind is None or not issubclass(kind, WeirError):
        return None
    return kind(found[3], found[2])


@contextmanager
def raising_own() -> Iterator[None]:
    """Run a block in which workers call functions of Weir. Raises what these raise, if that is an
    error of Weir, in place of Spark's error about it."""
    try:
        yield
    except PythonException as error:
        if own := _own(error):
            raise own from error
        raise


def _raised(error: PythonException) -> list[str]:
    """Return what a Python worker raised, preceded by its causes.

    Of each traceback that is the line that names the exception: the first line that is not
    indented.
    """
    lines = iter(str(error).splitlines())
    found = [
        line
        for header in lines
        if header == _TRACEBACK
        if (line := next((after for after in lines if after and not after.startswith(" ")), ""))
    ]
    # With hideTraceback there is one line after Spark's own.
    return found or str(error).splitlines()[1:2]


def _classes(error: PythonException) -> list[type | None]:
    names = [_NAME.match(line) for line in _raised(error)]
    return [_class_named(name[1]) if name else None for name in names]


def _class_named(name: str) -> type | None:
    """Return the class of an exception that a worker named, or None if this process does not know
    it."""
    module, _, rest = name.rpartition(".")
    if not module:
        given = getattr(builtins, name, None) or getattr(sys.modules["__main__"], name, None)
        return given if isinstance(given, type) else None
    while module:
        try:
            found: object = importlib.import_module(module)
        except Exception:  # the name may end with a class inside a class
            module, _, part = module.rpartition(".")
            rest = f"{part}.{rest}"
            continue
        for part in rest.split("."):
            found = getattr(found, part, None)
        return found if isinstance(found, type) else None
    return None


def _java_classes(error: PySparkException) -> Iterator[str]:
    """Yield the class names, including those of superclasses, of a Java exception and its
    causes."""
    one = getattr(error, "_origin", None)
    while one is not None:
        found = one.getClass()
        while found is not None:
            yield found.getName()
            found = found.getSuperclass()
        one = one.getCause()
