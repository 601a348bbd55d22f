"""Changes of a stream's columns, as forms and commands take them."""

import re
from collections.abc import Sequence

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.kernel.schema import with_default
from weir.model.schema import Field

_QUOTED = re.compile("`((?:[^`]|``)+)`")
_ARROW = re.compile(r"(\s*`(?:[^`]|``)+`\s*|.*?)->(.*)", re.DOTALL)


def renames(written: Sequence[str], argument: str = "rename_columns") -> dict[str, str]:
    """Return the new names by the old ones, of texts such as `gate -> exit`. A name with an arrow,
    or with blanks at its ends, stands in backquotes. `argument`: which has them. Raises
    InvalidInput."""
    found: dict[str, str] = {}
    for one in written:
        parts = _ARROW.fullmatch(one)
        old, new = map(_name, parts.groups()) if parts else ("", "")
        if not old or not new or old in found:
            raise InvalidInput(
                "argument_invalid",
                f"{called(argument)} holds {one!r}; write each column once, as old -> new.",
            )
        found[old] = new
    return found


def _name(written: str) -> str:
    quoted = _QUOTED.fullmatch(written.strip())
    return quoted[1].replace("``", "`") if quoted else written.strip()


def with_defaults(fields: Sequence[Field], written: Sequence[str]) -> list[Field]:
    """Return columns with their defaults, of texts such as `gate = unknown`. Raises InvalidInput
    for one that is not among the columns, or no value of its type."""
    given = defaults(written)
    if unknown := given.keys() - {field["name"] for field in fields}:
        raise _wrong_default(next(one for one in written if defaults([one]).keys() <= unknown))
    return [
        with_default(field, given[field["name"]]) if field["name"] in given else field
        for field in fields
    ]


def defaults(written: Sequence[str]) -> dict[str, str]:
    """Return the defaults by column, of texts such as `gate = unknown`. Raises InvalidInput."""
    found: dict[str, str] = {}
    for one in written:
        name, equals, value = one.partition("=")
        name = name.strip()
        if not name or not equals or name in found:
            raise _wrong_default(one)
        found[name] = value.removeprefix(" ")
    return found


def _wrong_default(written: str) -> InvalidInput:
    return InvalidInput(
        "argument_invalid",
        f"{called('defaults')} holds {written!r}; write each column that is added once, as "
        "column = value.",
    )
