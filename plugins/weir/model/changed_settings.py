"""Change settings of a stream, a reader group or an adjunct store. Pure."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, TypeVar

from weir.errors import InvalidInput


class _Configuration(Protocol):
    """Settings that check themselves."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def check(self) -> None: ...


C = TypeVar("C", bound=_Configuration)


def with_settings(configuration: C, changes: Mapping[str, object], owner: str) -> C:
    """Return a configuration with other settings, checked.

    `owner`: what has the settings, such as `a stream`. Raises InvalidInput for a setting that is
    unknown, or has a wrong value.
    """
    unknown = set(changes) - {one.name for one in fields(configuration)}
    if unknown:
        raise InvalidInput(
            "argument_invalid", f"{owner} has no setting {min(unknown)!r}; check its name."
        )
    new: C = replace(configuration, **dict[str, Any](changes))
    new.check()
    return new
