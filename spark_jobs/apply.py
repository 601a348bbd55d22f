"""Make streams, adjunct stores, reader groups and consumers what a file declares."""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from weir.declarations.apply import Checks, Planned, apply, compare
from weir.declarations.declared import Declared, is_declaring, read_object, read_text
from weir.errors import InvalidInput, WeirError
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
from weir.operations import FUNCTION_PATTERN, Apply
from weir.operations.consumers import check_consumer
from weir.operations.expressions import check_time, key_columns
from weir.operations.runner import Job, main
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import below_root

LONGEST = 10_000_000  # bytes of a file


def run(job: Job, arguments: Apply) -> dict[str, Any]:
    """Say what differs from the declarations, and change it. Only new streams, columns and stores
    need Spark."""
    declared = _read(job, arguments)

    checks = _checks(job)
    if arguments.dry_run:
        found = compare(job.database, declared, checks, arguments.allow_truncated)
        for one in found:
            job.say(str(one))
    else:
        found = apply(
            job.database, declared, checks=checks, allow_loss=arguments.allow_loss,
            allow_truncated=arguments.allow_truncated, request_id=job.request_id, say=job.say,
        )  # fmt: skip
    count = sum(map(len, (declared.streams, declared.stores, declared.groups, declared.consumers)))
    job.say(
        f"{len(found)} of {count} declared things {'differ' if arguments.dry_run else 'changed'}"
    )
    return {"changes": [one.report() for one in found], "unchanged": count - len(found)}


def _checks(job: Job) -> Checks:
    """Return checks by Spark's parser, which is loaded when one of them first needs it."""

    def columns(text: str, key: str | None) -> list[Field] | None:
        used = [] if key is None else key_columns(key)
        if not text:
            return None
        from weir.spark.users.expressions import check_key, parse_columns

        fields = parse_columns(job.spark, text, used)
        if key is not None:
            check_key(job.spark, key, fields)
        return fields

    def event_time(name: StreamName, text: str, fields: list[Field] | None) -> None:
        check_time(name, text, fields, lambda: job.spark)

    def definition(
        name: str, stream: StreamName, wanted: AdjunctDefinition, planned: Planned | None
    ) -> None:
        from weir.spark.adjuncts.check import check_definition

        check_definition(job.spark, job.database, job.settings, name, stream, wanted, planned)

    def consumer(
        group: str,
        declared: Mapping[str, Any],
        streams: Mapping[str, Configuration],
        made: Collection[str],
    ) -> None:

        check_consumer(job.database, job.settings, group, declared, streams, made)

    return Checks(columns, event_time, definition, consumer)


def _declaring(job: Job, name: str) -> Callable[[], Any]:
    """Return the function that is named as a file. Raises InvalidInput for one that is not meant
    for it."""
    function = job.function(name)
    if not is_declaring(function):
        raise InvalidInput(
            "function_declares_nothing",
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
    try:
        with system.open_input_file(f"{base}/{path}") as file:
            written = file.read(LONGEST + 1)
        if len(written) > LONGEST:
            raise InvalidInput(
                "declarations_invalid",
                f"file {arguments.file!r} is longer than {LONGEST:,} bytes; divide it.",
            )
        return read_text(written.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            "declarations_invalid",
            f"file {arguments.file!r} can't be read ({error}); check its path.",
        ) from None


def _called(function: Callable[..., Any], name: str) -> Any:
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


if __name__ == "__main__":
    sys.exit(main("apply", run))
