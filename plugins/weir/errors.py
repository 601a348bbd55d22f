"""Everything Weir raises on purpose: a class for programs that decide whether to go on, a code that
names the kind of trouble, and one sentence for the person who reads it: what is wrong, with which
value, what to do.

A code is a stable promise, a sentence is not: match `error.code`. Each code has one class.
`tests/errors/sentences.txt` lists them all. Statements share a code if a program would do the same
about them. A code is a literal where the error is made: an enumeration would be a second list, and
a class per kind 200 classes for what callers tell apart in ten.

WeirError
├── InvalidInput (ValueError)    the caller's arguments; the same call will fail again
│   └── BadRows                  rows that do not fit the stream, with the count and an example
├── NotFound (KeyError)          no such stream, reader group, transaction ...
├── Conflict                     the state, or an earlier request, stands against it
├── Fenced                       a newer attempt or another reader has taken over: stop
├── Truncated                    a position below the head of the stream
├── BatchFailed                  what a consumer does failed on a batch, for its events or at all
├── BuildFailed                  Spark failed while it built a version; another try may succeed
├── Unavailable                  the database could not be reached for longer than the patience
│   └── Busy                     another session holds a lock for longer than the patience
├── DatabaseFailed               the database answers, and can't do it: no space, no right, no Weir
├── UnreadableFile (weir.inputs) an undamaged file cannot be read now
├── Incomplete                   some of many failed, the others were done
└── InvariantViolation           metadata and files disagree: stop and keep the evidence
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any


class WeirError(Exception):
    """Base of all. `retryable`: whether the same call may succeed later without a change.

    As a text, the sentence is followed by its code: logs, Airflow and Spark show both.
    """

    retryable = False

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(code, sentence)
        self.code = code
        self.sentence = sentence

    def __str__(self) -> str:
        return f"{self.sentence} [{self.code}]"


class InvalidInput(WeirError, ValueError):
    """The caller's arguments are wrong; the message names the argument and the value."""


class BadRows(InvalidInput):
    """Rows of the input do not fit the stream; nothing was appended."""


class NotFound(WeirError, KeyError):
    """The named object does not exist."""


class Conflict(WeirError):
    """The present state of the object, or an earlier request of the same id, forbids this."""


class Fenced(WeirError):
    """Somebody else holds the transaction or the batch now; whatever was written is garbage.

    Asking anew is right: it finds what the other one did, or goes on from there.
    """

    retryable = True


class Truncated(WeirError):
    """The position lies below the head: the events were truncated by retention or by hand."""


class TruncatedWarning(UserWarning):
    """An answer lacks events that were truncated. To have an error in its place:
    `warnings.simplefilter("error", weir.TruncatedWarning)`."""


class BatchFailed(WeirError):
    """A consumer failed on a batch, which stays open; the message says which, and the cause."""

    def __init__(self, code: str, sentence: str, *, retryable: bool) -> None:
        super().__init__(code, sentence)
        self.retryable = retryable


class BuildFailed(WeirError):
    """Spark failed while it built a version of an adjunct store; another try may succeed."""

    retryable = True


class Unavailable(WeirError):
    """Postgres could not be reached for longer than the configured patience."""

    retryable = True


class Busy(Unavailable):
    """Another session has held what had to be locked for longer than the configured patience."""


class DatabaseFailed(WeirError):
    """Postgres could not run a statement, for a reason that lies with the server or the login."""

    def __init__(self, code: str, sentence: str, *, retryable: bool) -> None:
        super().__init__(code, sentence)
        self.retryable = retryable


class Incomplete(WeirError):
    """Some of many could not be done; the others were. `report` says what was done."""

    retryable = True

    def __init__(
        self, code: str, sentence: str, *, report: Mapping[str, Any], retryable: bool = True
    ) -> None:
        super().__init__(code, sentence)
        self.report = report
        self.retryable = retryable


class InvariantViolation(WeirError):
    """Something that must always hold does not; nothing was changed."""


def counted(count: int, what: str) -> str:
    """Return a number with what it counts, for a sentence: `1 event`; `2,000 events`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def either(choices: Iterable[str]) -> str:
    """Return what something may be, for a sentence: `fail or skip`; `keep, age or size`."""
    *others, last = choices
    return f"{', '.join(others)} or {last}" if others else last


def check_choice(name: str, value: object, choices: Collection[str]) -> None:
    """Check that a value is one of some texts. Raises InvalidInput that names them."""
    if value not in choices:
        raise InvalidInput(
            "argument_invalid", f"{name} is {value!r}; it must be {either(choices)}."
        )


def check_text(name: str, value: object) -> None:
    """Check that a value is a text. Raises InvalidInput that shows what it could be."""
    if not isinstance(value, str):
        raise InvalidInput(
            "argument_invalid", f"{name} is {value!r}; give a text, such as {str(value)!r}."
        )


def exited(what: str, error: SystemExit) -> InvalidInput:
    """Return the error for code of others that asked to end the process, which would end it without
    a word and with transactions open."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = (
        ""
        if trace is None
        else (f", in {trace.tb_frame.f_globals.get('__name__')}, line {trace.tb_lineno}")
    )
    return InvalidInput(
        "function_invalid",
        f"{what} was told to exit (SystemExit: {error.code!r}{where}), which ends no job; let the "
        "code return, or raise an error that says what is wrong.",
    )


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and then each error from which, or during whose handling, it was raised."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__ or (None if one.__suppress_context__ else one.__context__)


def is_mistake(error: Exception | type) -> bool:
    """Return whether an error, or errors of a class, are mistakes in a program's text: another try
    won't mend them."""
    kind = error if isinstance(error, type) else type(error)
    spark = kind.__module__.startswith("pyspark.errors")
    if spark and kind.__name__ in ("AnalysisException", "ParseException"):
        return True
    return issubclass(kind, (TypeError, AttributeError, NameError, ImportError, SyntaxError))
