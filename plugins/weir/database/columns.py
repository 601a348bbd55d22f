"""The columns that the fields of a dataclass name: so that each setting is written once."""

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

D = TypeVar("D", bound="DataclassInstance")


def taken(described: type[D], row: dict[str, Any]) -> D:
    """Take the columns out of a row, and return what they say; an array becomes a tuple."""
    found = {one.name: row.pop(one.name) for one in fields(described)}
    return described(**{n: tuple(v) if isinstance(v, list) else v for n, v in found.items()})


def parameters(value: "DataclassInstance") -> dict[str, Any]:
    """Return the values of these bound parameters; a tuple is sent as an array."""
    given = asdict(value)
    return {n: list(one) if isinstance(one, tuple) else one for n, one in given.items()}
