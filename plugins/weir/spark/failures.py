"""What a failure means: whether what the events hold may be its cause, and how it is said.

By SQLSTATE, which Spark and Postgres share: data, constraints, users' functions. An outage, lost
executors, a full disk, a file that is gone or a mistake in the program's text are not the events'.
"""

import builtins

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PythonException

from weir.errors import BadRows, WeirError, is_mistake

# Cardinality, data, constraint, a function's own error (38, 39), raised on purpose.
_OF_ROWS = {"21", "22", "23", "38", "39", "P0"}
LONGEST = 500  # characters of an error that are repeated in a sentence


def of_rows(sqlstate: str) -> bool:
    """Whether an error's SQLSTATE says that rows are its cause."""
    return sqlstate[:2] in _OF_ROWS


def caused_by_events(error: Exception) -> bool:
    """Whether fewer events may do without this failure.

    Of what a consumer's function raises, an OSError (some service is away) and the errors of
    `weir.errors` are no fault of the events.
    """
    if isinstance(error, BadRows):
        return True
    if isinstance(error, (WeirError, OSError, MemoryError, Py4JError)) or is_mistake(error):
        return False
    if isinstance(error, PySparkException):
        return of_rows(error.getSqlState() or "") and not _is_away(error)
    return True


def sentence(error: Exception) -> str:
    """What went wrong, in one line."""
    if isinstance(error, PythonException):
        said = _raised(error)
    else:
        said = str(error).strip()
        if not isinstance(error, (WeirError, PySparkException)):
            said = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (said.splitlines() or [type(error).__name__])[0][:LONGEST]


def _raised(error: PythonException) -> str:
    """What a Python worker raised: the line after the last that the traceback indents."""
    lines = str(error).splitlines()
    indented = [i for i, line in enumerate(lines) if line.startswith("  ")]
    return "\n".join(lines[indented[-1] + 1 :] if indented else lines)


def _is_away(error: PySparkException) -> bool:
    if not isinstance(error, PythonException):
        return False
    name = _raised(error).partition(":")[0].strip()
    found = getattr(builtins, name, None)
    if isinstance(found, type) and issubclass(found, (OSError, MemoryError)):
        return True
    return name.startswith("weir.errors.") and name != "weir.errors.BadRows"
