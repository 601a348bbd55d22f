"""Make streams, adjunct stores, reader groups and consumers what a file declares.

**Parameters.** A YAML file below an input root, a function that returns the declarations, or the
text itself (docs/consumers.md has an example). A *Dry run*, as the form begins, says what
differs. Nothing is ever deleted, and what the file does not name is left alone.

**On failure.** Retry or trigger it again: what was changed does not differ any more. Changes that
may lose data are refused, before anything is changed, unless loss is allowed; then the task waits
until a person approves them (*Required Actions*).
"""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

from weir.annex.declarations.apply import apply, compare
from weir.annex.declarations.declared import Declared
from weir.annex.declarations.differences import Changed
from weir.annex.declarations.reading import read_object, read_text
from weir.consumers.user_functions import is_declaring
from weir.errors import InvalidInput, WeirError
from weir.model.names import FUNCTION_PATTERN
from weir.operations.action import DATA, Action, Job
from weir.operations.approval import Loss, check_approved, things
from weir.operations.asked import Allowed
from weir.operations.form import argument, dry_run_argument, truncated_argument
from weir.operations.runner import run_if_main
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import below_root, check_regular

LONGEST = 10_000_000  # bytes of a file


@dataclass(frozen=True)
class Apply:
    """Make streams, adjunct stores, reader groups and consumers what a file declares. Nothing is
    deleted, and what the file does not name is left alone.
    """

    file: str = argument(
        "File",
        "A YAML file below an input root (in a terminal, of this machine); or module:function of "
        "a configured package, marked with @weir.declares, which returns the declarations as a "
        "dictionary. Empty: they are given as text.",
        "", maxLength=4_096,
    )  # fmt: skip
    text: str = argument(
        "Declarations",
        "The declarations as YAML, instead of a file.",
        "",
        maxLength=1_000_000,
        section="More",
        multiline=True,
    )
    dry_run: bool = dry_run_argument("Only say what differs, and change nothing.")
    allow_loss: bool = argument(
        "Allow loss",
        "Also make changes that may lose data: less retention, a stream taken out of a group, a "
        "group that is no subscriber any more. Without it such a file is refused.",
        False,
        section="More",
    )
    allow_truncated: bool = truncated_argument("More")
    allow_named: bool = argument(
        "Allow named",
        "Rename, drop and widen columns even if consumers, their functions or outputs name them, "
        "or may. Without it such a file is refused, and a dry run lists them.",
        False,
        section="More",
    )


class ApplyReport(TypedDict):
    """What differed from the declarations, and how many things did not."""

    changes: list[Changed]
    unchanged: int


def run(job: Job, arguments: Apply) -> ApplyReport:
    """Say what differs from the declarations, and change it."""
    declared = _read(job, arguments)
    if job.approved is not None:
        check_approved(job.approved, _loss(job, arguments, declared))
    if arguments.dry_run:
        found = compare(job.database, job.settings, declared, arguments.allow_truncated)
        for one in found:
            job.say(str(one))
    else:
        allowed = Allowed(arguments.allow_loss, arguments.allow_truncated, arguments.allow_named)
        found = apply(
            job.database, job.settings, declared, allowed, request_id=job.request_id, say=job.say
        )
    count = sum(map(len, (declared.streams, declared.stores, declared.groups, declared.consumers)))
    job.say(
        f"{len(found)} of {count} declared things {'differ' if arguments.dry_run else 'changed'}"
    )
    return {"changes": [one.report() for one in found], "unchanged": count - len(found)}


def measure(job: Job, arguments: Apply) -> Loss | None:
    """Return the changes, and which of them may lose data; None if none of them does."""
    if arguments.dry_run or not arguments.allow_loss:  # which is refused if anything is lost
        return None
    return _loss(job, arguments, _read(job, arguments))


def _loss(job: Job, arguments: Apply, declared: Declared) -> Loss | None:
    found = compare(job.database, job.settings, declared, arguments.allow_truncated)
    if not any(one.loses for one in found):
        return None
    lines = [str(one) for one in found]
    of = things(
        job.database, streams=declared.streams, groups=[*declared.groups, *declared.consumers],
        stores=declared.stores,
    )  # fmt: skip
    return Loss(lines, {"changes": lines, **of})


def _declaring(job: Job, name: str) -> Callable[[], object]:
    """Return the function that is named as a file. Raises InvalidInput for one that is not meant
    for it."""
    function = job.function(name)
    if not is_declaring(function):
        raise InvalidInput(
            "function_invalid",
            f"function {name!r} is not marked as one that declares; if it is meant for this, "
            "write @weir.declares above it.",
        )
    return function


def _read(job: Job, arguments: Apply) -> Declared:
    """Return what is declared in the text, the file, or what the function returns."""
    if bool(arguments.file) == bool(arguments.text):
        raise InvalidInput(
            "arguments_conflict",
            "the declarations are to come from either file or text; give one of them.",
        )
    if arguments.text:
        return read_text(arguments.text)
    if re.fullmatch(FUNCTION_PATTERN, arguments.file):
        return read_object(_called(_declaring(job, arguments.file), arguments.file))
    root, path = below_root(arguments.file, job.settings.input_roots, "file")
    system, base = filesystem(root)
    if "://" not in root:
        check_regular(f"{root}/{path}", "file")
    try:
        with system.open_input_file(f"{base}/{path}") as file:
            written = file.read(LONGEST + 1)
        if len(written) > LONGEST:
            raise InvalidInput(
                "declarations_invalid",
                f"file {arguments.file!r} is longer than {LONGEST:,} bytes; divide it.",
            )
        return read_text(written.decode())
    except FileNotFoundError:
        raise InvalidInput(
            "declarations_invalid",
            f"there is no file {arguments.file!r} below the input root {root}; check its path.",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "declarations_invalid",
            f"file {arguments.file!r} can't be read ({error}); check its path.",
        ) from None


def _called(function: Callable[..., object], name: str) -> object:
    """Return what a function declares. Raises InvalidInput if it takes arguments, or fails."""
    try:
        inspect.signature(function).bind()
    except TypeError:
        raise InvalidInput(
            "declarations_invalid",
            f"function {name} takes arguments, so it declares nothing; name one without arguments, "
            "which returns the declarations as a dictionary.",
        ) from None
    except ValueError:  # some callables written in C do not say what they take
        pass
    try:
        return function()
    except WeirError:
        raise
    except (Exception, SystemExit) as error:
        raise InvalidInput(
            "declarations_invalid",
            f"function {name} fails ({type(error).__name__}: {_first_line(str(error))}), so "
            "nothing is declared; correct it.",
        ) from error


def _first_line(message: str) -> str:
    """Return the first line of a message."""
    return (message.strip().splitlines() or [""])[0][:300]


def said(arguments: Apply, report: ApplyReport) -> str:
    """Say how many things were not as declared."""
    done = "differ" if arguments.dry_run else "changed"
    return f"{len(report['changes']):,} {done}, {report['unchanged']:,} are as declared"


ACTION = Action(__file__, Apply, run, said, DATA, measure=measure)
run_if_main(ACTION, __name__)
