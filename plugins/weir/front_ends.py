"""Say what a person can do in the words of the place where it is read: a form, a terminal, a DAG,
or a program.

The text of an error or a log line names an operation and its arguments as the jobs do,
by `do`, `give`, `leave_out` and `called`. The entry point of a process says by `speaking` in whose
words they are: tasks of Airflow and the jobs that they submit in those of a form, if a person has
filled it in, else in those of a DAG; `weir` in those of a terminal. All else is a program. Texts
that are stored have the words of what ran: they are made when the sentence is made, and never
replaced later, where a value of a user might look like one of them.
"""

import json
import re
import shlex
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Literal

FrontEnd = Literal["form", "terminal", "dag", "program"]
_CODE = ("dag", "program")  # in which people write
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
PLACEHOLDER = re.compile("[A-Z]+( [A-Z]+)*")
# Arguments that have another name in a DAG, because every task of Airflow has the first.
RENAMED = {"retries": "batch_retries", "owner": "owner_role"}
# The operators that have another name than their operation.
_OPERATORS = {
    "ingest": "AppendOperator", "checkpoint_reader_group": "CheckpointOperator",
    "stream_cuts": "CaptureOperator", "scale_stream": "ScaleOperator",
    "truncate_stream": "TruncateOperator", "scale": "ScaleByPolicyOperator",
}  # fmt: skip
_COMMANDS = {"create_stream": "create"}  # those that are not the operation's name
_POSITIONAL = {
    "ingest": ["files"], "process": ["reader_group", "function"], "apply": ["file"],
}  # fmt: skip
_SUBJECTS = ("adjunct_store", "stream", "reader_group", "streams")
_OPTIONS = {("ingest", "routing_key"): "--key", ("create_stream", "routing_key"): "--key",
            ("process", "outputs"): "--output"}  # fmt: skip


@dataclass(frozen=True)
class _Speaker:
    front_end: FrontEnd
    forms: Mapping[str, type]
    operation: str = ""  # the one that runs


_PROGRAM = _Speaker("program", {})
_speakers: list[_Speaker] = []  # of the blocks that run; those of threads may overlap
_asked: ContextVar[_Speaker | None] = ContextVar("asked", default=None)


def _speaking() -> _Speaker:
    return _asked.get() or (_speakers[-1] if _speakers else _PROGRAM)


@contextmanager
def speaking(front_end: FrontEnd, forms: Mapping[str, type], operation: str = "") -> Iterator[None]:
    """Use the words of a front end in this process for the block. `forms`: the arguments of each
    operation, as `weir.operations.jobs.FORMS` has them; `operation`: the one that runs, if any."""
    own = _Speaker(front_end, forms, operation)
    _speakers.append(own)
    try:
        yield
    finally:
        _speakers[:] = [one for one in _speakers if one is not own]


@contextmanager
def speaking_to_one(
    front_end: FrontEnd, forms: Mapping[str, type], operation: str
) -> Iterator[None]:
    """Use the words of a front end for the block, in this thread only: several people are answered
    at once."""
    before = _asked.set(_Speaker(front_end, forms, operation))
    try:
        yield
    finally:
        _asked.reset(before)


def do(operation: str, **arguments: object) -> str:
    """Return how to start an operation with these arguments, as a phrase that begins with a verb,
    such as run `weir seal-stream shop/orders`. A value in capitals stands for one that the person
    chooses; a form has a field for it."""
    if _speaking().front_end == "form":
        shown = [
            f"{_title(operation, name)}: {_in_form(value)}"
            for name, value in arguments.items()
            if not _is_chosen(value)
        ]
        return f"trigger weir_{operation}" + (f" ({', '.join(shown)})" if shown else "")
    if _speaking().front_end in _CODE:
        given = ", ".join(f"{_in_code(name)}={value!r}" for name, value in arguments.items())
        if _speaking().front_end == "dag":
            return f"use {operator_name(operation)}({given})"
        # Every operation is a method of what weir.open returns.
        return f"call weir.open().{operation}({given})"
    return f"run `{typed(operation, arguments)}`"


def give(**argument: object) -> str:
    """Return how to give the running operation one argument, as a phrase that begins with a verb,
    such as add --allow-repeat."""
    [(name, value)] = argument.items()
    if _speaking().front_end in _CODE:
        return f"pass {_in_code(name)}={value if _is_chosen(value) else repr(value)}"
    if not _takes(name):
        return f"set {name} to {_in_form(value)}"
    if _speaking().front_end == "terminal":
        return f"add {_joined(_words(_speaking().operation, name, value))}"
    if isinstance(value, bool):
        return f"switch {called(name)} {_in_form(value)}"
    if _is_chosen(value):
        return f"fill in {called(name)}"
    return f"set {called(name)} to {_in_form(value)}"


def in_form() -> bool:
    """Return whether what is given comes from a form, where each entry of a list is a line."""
    return _speaking().front_end == "form"


def leave_out(name: str) -> str:
    """Return how not to give the running operation an argument, as a phrase that begins with a
    verb."""
    if _speaking().front_end == "form" and _takes(name):
        return f"leave {called(name)} empty"
    return f"leave {called(name)} out"


def called(name: str) -> str:
    """Return what the running operation's argument is called. What is no argument of it, as in a
    file of declarations, has its own name everywhere."""
    if _speaking().front_end in _CODE or not _takes(name):
        return _in_code(name)
    if _speaking().front_end == "form":
        return f'"{_title(_speaking().operation, name)}"'
    if name in positional(_speaking().operation, _arguments(_speaking().operation)):
        return name
    return option(_speaking().operation, name)


def operator_name(operation: str) -> str:
    """Return the name of the operator of an operation in a DAG, such as ProcessOperator."""
    return _OPERATORS.get(operation) or f"{operation.title().replace('_', '')}Operator"


def command(operation: str) -> str:
    """Return what comes after `weir` in a terminal to run an operation."""
    return _COMMANDS.get(operation, operation.replace("_", "-"))


def positional(operation: str, arguments: Collection[str]) -> list[str]:
    """Return the arguments of an operation that a terminal takes without their names, in order."""
    subject = [name for name in _SUBJECTS if name in arguments][:1]
    return _POSITIONAL.get(operation, subject)


def option(operation: str, argument: str) -> str:
    """Return the name of an argument in a terminal."""
    return _OPTIONS.get((operation, argument), f"--{argument.replace('_', '-')}")


def typed(operation: str, arguments: Mapping[str, object]) -> str:
    """Return a command as a person types it, with the arguments that need no name first."""
    subjects = [name for name in positional(operation, arguments) if name in arguments]
    first = [str(one) for name in subjects for one in _listed(arguments[name])]
    words = ["weir", command(operation)]
    others = [
        word
        for name, value in arguments.items()
        if name not in subjects
        for word in _words(operation, name, value)
    ]
    if any(one.startswith("-") for one in first):  # which would be taken for an option
        return _joined([*words, *others, "--", *first])
    return _joined([*words, *first, *others])


def _joined(words: list[str]) -> str:
    return " ".join(map(_quoted, words))


def _quoted(word: str) -> str:
    """Return a word as a shell takes it. What moves a cursor or turns text around is escaped, as
    bash, zsh and ksh read it back: whoever pastes a command would not see what it does."""
    if not _UNSEEN.search(word):
        return shlex.quote(word)
    # At most so many digits are read, so that what follows is never taken for one of them.
    escaped = _UNSEEN.sub(lambda one: f"\\u{ord(one[0]):04x}",
                          word.replace("\\", "\\\\").replace("'", "\\'"))  # fmt: skip
    return f"$'{escaped}'"


def _words(operation: str, name: str, value: object) -> list[str]:
    """Return an argument as the words of a command."""
    if isinstance(value, bool):
        return [option(operation, name) if value else f"--no-{name.replace('_', '-')}"]
    words = list[str]()
    for one in map(_text, _listed(value)):
        if one.startswith("-"):  # which would be taken for another option
            words += [f"{option(operation, name)}={one}"]
        else:
            words += [option(operation, name), one]
    return words


def _in_code(name: str) -> str:
    """Return the name of an argument as a DAG or a program writes it."""
    in_dag = _speaking().front_end == "dag"
    return RENAMED.get(name, name) if in_dag else name


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text(value: object) -> str:
    return json.dumps(value) if isinstance(value, dict) else str(value)


def _in_form(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return ", ".join(map(_text, _listed(value)))


def _is_chosen(value: object) -> bool:
    """Return whether a value stands for one that the person chooses."""
    return PLACEHOLDER.fullmatch(_in_form(value)) is not None


def _takes(name: str) -> bool:
    return name in _arguments(_speaking().operation)


def _arguments(operation: str) -> list[str]:
    form = _speaking().forms.get(operation)
    return [one.name for one in fields(form)] if form else []


def _title(operation: str, name: str) -> str:
    form = _speaking().forms[operation]
    return str(next(one.metadata["title"] for one in fields(form) if one.name == name))
