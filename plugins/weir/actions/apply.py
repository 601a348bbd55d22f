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
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from weir.actions.create_reader_group import CreateReaderGroup
from weir.actions.create_stream import CreateStream
from weir.actions.define_adjunct_store import DefineAdjunctStore
from weir.actions.process import Process, changed_settings, check_consumer
from weir.actions.update_reader_group import UpdateReaderGroup
from weir.actions.update_stream import UpdateStream
from weir.adjunct.stores import StoreSettings
from weir.consumers.column_users import allowing
from weir.controller.update import Allowing
from weir.declarations.apply import Checks, Planned, apply, compare
from weir.declarations.columns import DeclaredColumns
from weir.declarations.declared import Declared, DeclaredGroup, DeclaredStream, is_declaring
from weir.errors import InvalidInput, WeirError
from weir.front_ends import called, give
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.amounts import parse_age
from weir.model.names import (
    FUNCTION_PATTERN,
    StreamName,
    adjunct_store_name,
    check_user_columns,
    reader_group_name,
    stream_name,
)
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
from weir.operations.action import DATA, Action, Job
from weir.operations.approval import Loss, check_approved
from weir.operations.column_settings import defaults, renames
from weir.operations.expressions import check_time, key_columns
from weir.operations.form import (
    argument,
    dry_run_argument,
    parse,
    truncated_argument,
)
from weir.reader_groups.groups.pins import check_disjoint
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import below_root

LONGEST = 10_000_000  # bytes of a file
# The arguments of the forms that the name of an entry stands for.
_NAMED_BY = {
    "streams": {"stream"}, "adjunct_stores": {"adjunct_store"},
    "reader_groups": {"reader_group"}, "consumers": {"reader_group"},
}  # fmt: skip
SECTIONS = tuple(_NAMED_BY)
_LATER = ("defaults", "rename_columns", "drop_columns")
_EXAMPLE = "streams: {shop/orders: {routing_key: customer}}"
A = TypeVar("A")


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


def run(job: Job, arguments: Apply) -> dict[str, Any]:
    """Say what differs from the declarations, and change it. Only new streams, columns and stores
    need Spark."""
    declared = _read(job, arguments)

    checks = _checks(job)
    if job.approved is not None:
        check_approved(job.approved, _loss(job, arguments, declared))
    if arguments.dry_run:
        found = compare(job.database, declared, checks, arguments.allow_truncated)
        for one in found:
            job.say(str(one))
    else:
        found = apply(
            job.database, declared, checks=checks, allow_loss=arguments.allow_loss,
            allow_truncated=arguments.allow_truncated, allow_named=arguments.allow_named,
            request_id=job.request_id, say=job.say,
        )  # fmt: skip
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
    found = compare(job.database, declared, _checks(job), arguments.allow_truncated)
    if not any(one.loses for one in found):
        return None
    lines = [str(one) for one in found]
    return Loss(lines, {"changes": lines})


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

    def asks(allow_named: bool) -> Allowing:
        return allowing(allow_named, job.settings.function_path)

    return Checks(columns, event_time, definition, consumer, asks)


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


def read_text(text: str) -> Declared:
    """Return what a YAML text declares. Raises InvalidInput naming the entry that is wrong."""
    from weir.declarations.written import read_yaml

    found = read_yaml(text)
    return read_object(found if found is not None else {})


def read_object(found: Any) -> Declared:
    """Return what an object declares that a YAML text or a function gives. Raises InvalidInput."""
    if not isinstance(found, dict) or not set(found) <= set(SECTIONS):
        wrong = sorted(map(str, found)) if isinstance(found, dict) else type(found).__name__
        raise InvalidInput(
            "declarations_invalid",
            f"the declarations have {wrong}; they must be a mapping with {', '.join(SECTIONS)}, "
            f"such as {_EXAMPLE}.",
        )
    return Declared(
        _each(found, "streams", _stream),
        _each(found, "adjunct_stores", _store),
        _each(found, "reader_groups", _group),
        _each(found, "consumers", _consumer),
    )


def _each(found: dict[str, Any], section: str, read: Callable[[str, Any], A]) -> dict[str, A]:
    entries = {} if found.get(section) is None else found[section]
    if not isinstance(entries, dict) or not all(
        isinstance(name, str) and (one is None or _has_names(one)) for name, one in entries.items()
    ):
        raise InvalidInput(
            "declarations_invalid",
            f"{section} must be a mapping from each name to its settings, such as {_EXAMPLE}.",
        )
    done = {}
    for name, one in entries.items():
        try:
            if named := _NAMED_BY[section] & set(one or {}):
                raise InvalidInput(
                    "argument_unknown",
                    f"{min(named)} is given, but {name!r} is the name already; leave it out.",
                )
            done[name] = read(name, one or {})
        except InvalidInput as error:
            raise InvalidInput(
                "declarations_invalid", f"in {section}, {name}: {error.sentence}"
            ) from None
    return done


def _has_names(entry: Any) -> bool:
    return isinstance(entry, dict) and all(isinstance(name, str) for name in entry)


def _stream(name: str, given: dict[str, Any]) -> DeclaredStream:
    if type(most := given.get("max_segments")) is int:  # the form has a text, which may be none
        given = {**given, "max_segments": str(most)}
    # A stream is created without these, so the form that changes one has them.
    later = {one: given[one] for one in _LATER if one in given}
    rest = {one: value for one, value in given.items() if one not in later}
    form = parse(CreateStream, {"stream": str(stream_name(name, reserved=False)), **rest})
    change = parse(UpdateStream, {"stream": name, **later})
    renamed = renames(change.rename_columns)
    for stored in renamed:
        check_user_columns([stored])
    lower = [one.lower() for one in (*renamed, *change.drop_columns)]
    if len(set(lower)) < len(lower) or len(set(renamed.values())) < len(renamed):
        raise InvalidInput(
            "column_changed_twice",
            f"{called('rename_columns')} and {called('drop_columns')} name a column twice; name "
            "each once.",
        )
    columns = DeclaredColumns(
        form.schema.strip(), defaults(change.defaults), renamed, tuple(change.drop_columns)
    )
    return DeclaredStream(form.configuration, form.segments, columns)


def _store(name: str, given: dict[str, Any]) -> StoreSettings:
    form = parse(DefineAdjunctStore, {"adjunct_store": adjunct_store_name(name), **given})
    wanted = StoreSettings(
        stream=stream_name(form.stream), configuration=form.configuration,
        definition=form.definition, time_out=parse_age(form.time_out),
    )  # fmt: skip
    wanted.check()
    return wanted


def _group(name: str, given: dict[str, Any]) -> DeclaredGroup:
    reader_group_name(name)
    if for_all := {"allow_loss", "allow_truncated"} & given.keys():
        raise InvalidInput(
            "argument_unknown",
            f"{min(for_all)} is for the declarations as a whole; leave it out here, and "
            f"{give(**{min(for_all): True})}.",
        )
    rest = {one: value for one, value in given.items() if one != "pins"}
    form = parse(CreateReaderGroup, {"reader_group": name, **rest})
    # A group is created without pins, so the form that changes one has them.
    pinned = parse(UpdateReaderGroup, {"reader_group": name, "pins": given.get("pins")})
    pins = tuple(sorted(pinned.changes.get("pins", ())))
    check_disjoint(pins)
    streams = tuple(sorted(form.streams))
    return DeclaredGroup(form.configuration, streams, form.start, form.end, pins)


def _consumer(name: str, given: dict[str, Any]) -> dict[str, Any]:
    form = parse(Process, {"reader_group": name, **given})
    if not form.function or not form.outputs:
        raise InvalidInput(
            "declarations_invalid", "a consumer needs a function and outputs; declare both."
        )
    return changed_settings(form)


def said(arguments: Apply, report: dict[str, Any]) -> str:
    """Say how many things were not as declared."""
    done = "differ" if arguments.dry_run else "changed"
    return f"{len(report['changes']):,} {done}, {report['unchanged']:,} are as declared"


ACTION = Action(Apply, run, said, DATA, measure=measure)
