"""Read what a text or a function declares, by the forms that people fill in for one thing."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from weir.annex.declarations.columns import DeclaredColumns
from weir.annex.declarations.declared import Declared, DeclaredStream
from weir.annex.declarations.written import read_yaml
from weir.errors import InvalidInput
from weir.front_ends import called, give
from weir.model.names import (
    adjunct_store_name,
    check_user_columns,
    reader_group_name,
    stream_name,
)
from weir.operations.asked import AskedGroup, AskedStore
from weir.operations.column_settings import defaults, renames
from weir.operations.consumers import Process, changed_settings
from weir.operations.form import (
    parse,
)
from weir.operations.group_forms import CreateReaderGroup, UpdateReaderGroup
from weir.operations.store_forms import DefineAdjunctStore
from weir.operations.stream_forms import CreateStream, UpdateStream
from weir.reader_groups.groups.pins import check_disjoint

# The arguments of the forms that the name of an entry stands for.
_NAMED_BY = {
    "streams": {"stream"}, "adjunct_stores": {"adjunct_store"},
    "reader_groups": {"reader_group"}, "consumers": {"reader_group"},
}  # fmt: skip
SECTIONS = tuple(_NAMED_BY)
_LATER = ("defaults", "rename_columns", "drop_columns")
_EXAMPLE = "streams: {shop/orders: {routing_key: customer}}"
A = TypeVar("A")


def read_text(text: str) -> Declared:
    """Return what a YAML text declares. Raises InvalidInput naming the entry that is wrong."""
    found = read_yaml(text)
    return read_object(found if found is not None else {})


def read_object(found: object) -> Declared:
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


def _each(
    found: Mapping[str, object], section: str, read: Callable[[str, dict[str, object]], A]
) -> dict[str, A]:
    entries: object = {} if found.get(section) is None else found[section]
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
                    "argument_invalid",
                    f"{min(named)} is given, but {name!r} is the name already; leave it out.",
                )
            done[name] = read(name, one or {})
        except InvalidInput as error:
            raise InvalidInput(
                "declarations_invalid", f"in {section}, {name}: {error.sentence}"
            ) from None
    return done


def _has_names(entry: object) -> bool:
    return isinstance(entry, dict) and all(isinstance(name, str) for name in entry)


def _stream(name: str, given: dict[str, object]) -> DeclaredStream:
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
            "argument_invalid",
            f"{called('rename_columns')} and {called('drop_columns')} name a column twice; name "
            "each once.",
        )
    columns = DeclaredColumns(
        form.schema.strip(), defaults(change.defaults), renamed, tuple(change.drop_columns)
    )
    return DeclaredStream(form.configuration, form.segments, columns)


def _store(name: str, given: dict[str, object]) -> AskedStore:
    form = parse(DefineAdjunctStore, {"adjunct_store": adjunct_store_name(name), **given})
    form.asked.whole.check()
    return form.asked


def _group(name: str, given: dict[str, object]) -> AskedGroup:
    reader_group_name(name)
    if for_all := {"allow_loss", "allow_truncated"} & given.keys():
        raise InvalidInput(
            "argument_invalid",
            f"{min(for_all)} is for the declarations as a whole; leave it out here, and "
            f"{give(**{min(for_all): True})}.",
        )
    rest = {one: value for one, value in given.items() if one != "pins"}
    asked = parse(CreateReaderGroup, {"reader_group": name, **rest}).asked
    # A group is created without pins, so the form that changes one has them.
    pinned = parse(UpdateReaderGroup, {"reader_group": name, "pins": given.get("pins")}).asked
    pins = sorted(pinned.pins or ())
    check_disjoint(pins)
    return replace(asked, streams=sorted(asked.streams or (), key=str), pins=pins)


def _consumer(name: str, given: dict[str, object]) -> dict[str, object]:
    form = parse(Process, {"reader_group": name, **given})
    if not form.function or not form.outputs:
        raise InvalidInput(
            "declarations_invalid", "a consumer needs a function and outputs; declare both."
        )
    return changed_settings(form)
