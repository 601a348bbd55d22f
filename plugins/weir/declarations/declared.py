"""Read what a file declares, with the same fields and checks as the forms."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from weir.adjunct.stores import StoreSettings
from weir.declarations.written import read_yaml
from weir.errors import InvalidInput
from weir.front_ends import give
from weir.model.amounts import parse_age
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import adjunct_store_name, reader_group_name, stream_name
from weir.model.stream_configuration import Configuration
from weir.operations import (
    CreateReaderGroup,
    CreateStream,
    DefineAdjunctStore,
    Process,
    UpdateReaderGroup,
    parse,
)
from weir.operations.consumers import changed_settings
from weir.reader_groups.groups.pins import Pin, check_disjoint

# The arguments of the forms that the name of an entry stands for.
_NAMED_BY = {
    "streams": {"stream"}, "adjunct_stores": {"adjunct_store"},
    "reader_groups": {"reader_group"}, "consumers": {"reader_group"},
}  # fmt: skip
SECTIONS = tuple(_NAMED_BY)
_EXAMPLE = "streams: {shop/orders: {routing_key: customer}}"
A = TypeVar("A")
F = TypeVar("F", bound=Callable[..., Any])
_DECLARES = object()  # a mark that nothing else has


@dataclass(frozen=True)
class DeclaredStream:
    """A stream as it is to be. `segments` are those to begin with."""

    configuration: Configuration
    segments: int
    columns: str


@dataclass(frozen=True)
class DeclaredGroup:
    """A reader group as it is to be. It begins at `start` in streams that it does not read yet."""

    configuration: GroupConfiguration
    streams: tuple[str, ...]
    start: str
    end: str
    pins: tuple[Pin, ...]


@dataclass(frozen=True)
class Declared:
    """What a file declares, by name. A consumer has the name of its group, and the arguments of
    `weir_process` that it sets."""

    streams: Mapping[str, DeclaredStream] = field(default_factory=dict)
    stores: Mapping[str, StoreSettings] = field(default_factory=dict)
    groups: Mapping[str, DeclaredGroup] = field(default_factory=dict)
    consumers: Mapping[str, dict[str, Any]] = field(default_factory=dict)


def declares(function: F) -> F:
    """Mark a function without arguments that returns declarations, so that `weir_apply` may call
    it. Whoever may trigger that chooses the name, so no other function is called."""
    function.weir_declares = _DECLARES  # type: ignore[attr-defined]  # for `is_declaring`
    return function


def is_declaring(function: Callable[..., Any]) -> bool:
    """Return whether a function is marked with `declares`."""
    return getattr(function, "weir_declares", None) is _DECLARES


def read_text(text: str) -> Declared:
    """Return what a YAML text declares. Raises InvalidInput naming the entry that is wrong."""
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
    form = parse(CreateStream, {"stream": str(stream_name(name, reserved=False)), **given})
    return DeclaredStream(form.configuration, form.segments, form.schema.strip())


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
