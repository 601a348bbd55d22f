"""One description of an argument, from which come its field in a form and the job's check."""

import re
from dataclasses import MISSING, Field, field, fields
from typing import Any, TypeVar, get_type_hints

from weir.errors import InvalidInput
from weir.names import READER_GROUP_PATTERN, STREAM_PATTERN

A = TypeVar("A")
SEGMENT_PATTERN = r"^\d+\.\d+$"
PLACE = (
    "head, tail, time 2013-06-01T00:00:00Z, or a cut such as 0.0=12, 1.0=7 (for several streams "
    '{"nyc/flights": {"0.0": 12}})'
)
FUNCTION_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def argument(title: str, description: str, default: Any = MISSING, **schema: Any) -> Any:
    """A field of a form. `schema`: JSON schema keywords (pattern, enum, minimum, items ...)."""
    metadata = {"title": title, "description": description, "schema": schema}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def stream_argument(
    description: str = "The stream, as scope/stream.", pattern: str = STREAM_PATTERN
) -> Any:
    return argument("Stream", description, pattern=pattern)


def reader_group_argument(description: str = "The reader group's name.") -> Any:
    return argument("Reader group", description, pattern=READER_GROUP_PATTERN)


def json_schema(form: type[Any], known: Field[Any]) -> dict[str, Any]:
    """The JSON schema of one argument."""
    kind = get_type_hints(form)[known.name]
    types = {str: "string", int: "integer", bool: "boolean", float: "number"}
    return {"type": types.get(kind, "array"), **known.metadata["schema"]}


def parse(form: type[A], given: dict[str, Any]) -> A:
    """The arguments, checked. Raises InvalidInput naming the argument and what it must be."""
    known = {f.name: f for f in fields(form)}  # type: ignore[arg-type]  # every form is a dataclass
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"{name!r} is not an argument of this job; it takes {', '.join(known) or 'none'}."
            )
    values = {}
    for name, one in known.items():
        if name not in given:
            if one.default is MISSING and one.default_factory is MISSING:
                raise InvalidInput(f"{name!r} is missing: {one.metadata['description']}")
            continue
        value, schema = given[name], json_schema(form, one)
        if not _fits(value, schema):
            raise InvalidInput(f"{name} is {value!r}: {one.metadata['description']}")
        values[name] = value
    return form(**values)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits the few JSON schema keywords that the forms use."""
    kinds = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "array": list}
    if not isinstance(value, kinds[schema.get("type", "string")]):  # type: ignore[arg-type]  # a type or a tuple of them
        return False
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(
            _fits(part, schema["items"]) for part in value
        )
    if isinstance(value, str):
        return (
            value in schema.get("enum", [value])
            and re.fullmatch(schema.get("pattern", ".*"), value, re.DOTALL) is not None
            and len(value) >= schema.get("minLength", 0)
        )
    return bool(
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and schema.get("exclusiveMinimum", value - 1) < value
        and value < schema.get("exclusiveMaximum", value + 1)
    )
