"""SQL for the columns that the fields of a dataclass name: so that each setting is written once."""

from dataclasses import asdict, fields
from typing import Any


def names(described: type) -> str:
    """Return the columns: `a, b`."""
    return ", ".join(one.name for one in fields(described))


def values(described: type) -> str:
    """Return a bound parameter for each column: `:a, :b`."""
    return ", ".join(f":{one.name}" for one in fields(described))


def taken(described: type, row: dict[str, Any]) -> dict[str, Any]:
    """Take the columns out of a row, and return them."""
    return {one.name: row.pop(one.name) for one in fields(described)}


def parameters(value: Any) -> dict[str, Any]:
    """Return the values of these bound parameters; a tuple is sent as an array."""
    given = asdict(value)
    return {n: list(one) if isinstance(one, tuple) else one for n, one in given.items()}
