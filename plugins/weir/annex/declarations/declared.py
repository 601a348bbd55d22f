"""What a file declares, and the mark of a function that may."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from weir.annex.declarations.columns import DeclaredColumns
from weir.model.stream_configuration import Configuration
from weir.operations.asked import AskedGroup, AskedStore

F = TypeVar("F", bound=Callable[..., Any])
_DECLARES = object()  # a mark that nothing else has


@dataclass(frozen=True)
class DeclaredStream:
    """A stream as it is to be. `segments` are those to begin with."""

    configuration: Configuration
    segments: int
    columns: DeclaredColumns


@dataclass(frozen=True)
class Declared:
    """What a file declares, by name. A consumer has the name of its group, and the arguments of
    `weir_process` that it sets."""

    streams: Mapping[str, DeclaredStream] = field(default_factory=dict)
    stores: Mapping[str, AskedStore] = field(default_factory=dict)
    groups: Mapping[str, AskedGroup] = field(default_factory=dict)
    consumers: Mapping[str, dict[str, Any]] = field(default_factory=dict)


def declares(function: F) -> F:
    """Mark a function without arguments that returns declarations, so that `weir_apply` may call
    it. Whoever may trigger that chooses the name, so no other function is called."""
    function.weir_declares = _DECLARES  # type: ignore[attr-defined]  # for `is_declaring`
    return function


def is_declaring(function: Callable[..., Any]) -> bool:
    """Return whether a function is marked with `declares`."""
    return getattr(function, "weir_declares", None) is _DECLARES
