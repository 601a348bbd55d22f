"""Classify failures: decide whether the events of a batch may be the cause, and describe the
failure.

A failure counts as caused by the events only if that is known. An outage, a full disk, a missing
right, a missing file or a mistake in the program fails for every event alike; rejecting events
because of it would reject all of them.
"""

import re
from collections.abc import Iterator

from sqlalchemy import exc

from weir.errors import BadRows, WeirError, chain, is_mistake
from weir.reader_groups.outputs.refused_rows import of_rows

LONGEST = 500  # characters of another error that a sentence quotes
# Some libraries raise no OSError when something is unavailable. The class names of database drivers
# follow PEP 249; those of other services mostly say it in words.
_SAYS_AWAY = re.compile(
    r"(Interface|Internal|NotSupported|Operational|Programming)Error"
    r"|.*(Connect|Time(d)?_?out|Unavailable)\w*",
    re.IGNORECASE,
)


def causes(error: BaseException, *ends: type) -> Iterator[BaseException]:
    """Yield an error and what led to it, without what only transports one: what is below an error
    of these classes, or below BadRows."""
    for one in chain(error):
        yield one
        if isinstance(one, (BadRows, *ends)):
            return


def of_events(error: BaseException, *never: type) -> bool:
    """Return whether one error, whatever led to it, is of a kind that events cause. `never`:
    further classes that they do not cause."""
    if isinstance(error, exc.DBAPIError):
        return False  # errors of the tables that a batch writes to are BadRows by now
    state = getattr(error, "pgcode", None) or getattr(error, "sqlstate", None)
    if isinstance(state, str):  # from a Postgres driver that the function uses
        return of_rows(state)
    return class_of_events(type(error), *never)


def caused_by_events(error: BaseException) -> bool:
    """Return whether fewer events may succeed: whether the error, and every error that led to it,
    is of a kind that events cause."""
    return all(of_events(one) for one in causes(error))


def class_of_events(found: type, *never: type) -> bool:
    """Return whether exceptions of a class may be caused by events. `never`: further classes that
    they do not cause."""
    if issubclass(found, BadRows):
        return True
    if not issubclass(found, Exception) or is_mistake(found):
        return False
    if issubclass(found, (WeirError, OSError, MemoryError, *never)):
        return False
    return not any(_SAYS_AWAY.fullmatch(parent.__name__) for parent in found.__mro__)


def sentence(error: Exception) -> str:
    """Return what went wrong, in one line."""
    message = error.sentence if isinstance(error, WeirError) else str(error).strip()
    if not isinstance(error, WeirError):
        message = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return first_line(error, message)


def first_line(error: Exception, message: str) -> str:
    """Return the first line of what is said of an error, as far as a sentence quotes it."""
    return (message.splitlines() or [type(error).__name__])[0][:LONGEST]
