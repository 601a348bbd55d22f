"""Describe an argument once; its field in a form and the job's check come from that description."""

import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, Field, field, fields
from functools import cache
from types import EllipsisType
from typing import ClassVar, Protocol, TypeVar, Unpack, get_origin, get_type_hints

from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.amounts import AGE, AGE_PATTERN, SIZE, SIZE_PATTERN
from weir.model.names import (
    ADJUNCT_STORE_PATTERN,
    FUNCTION_PATTERN,
    LABEL_PATTERN,
    READABLE_STREAM_PATTERN,
    READER_GROUP_PATTERN,
    RULE,
    STREAM_PATTERN,
    TAG,
    TAG_PATTERN,
    shortened,
    unstorable,
)
from weir.operations.entries import (
    LINE_PATTERN,
    TEXT_PATTERN,
    Keywords,
    Schema,
    as_meant,
    holds_nothing,
    holds_quotes,
    within_quotes,
)


class Form(Protocol):
    """The arguments of an action: a dataclass, each of whose fields is made by `argument`."""

    __dataclass_fields__: ClassVar[dict[str, Field[object]]]


A = TypeVar("A", bound=Form)
T = TypeVar("T")
_kinds: Callable[[type[Form]], dict[str, object]] = cache(get_type_hints)  # reads a whole form
SEGMENT_PATTERN = r"^[0-9]+\.[0-9]+$"
STARTING_POINT = (
    "head, tail, a time such as 2013-06-01 09:00 (UTC), event time 2013-06-01 (of streams that "
    "have one), or a cut such as 0.0=12, 1.0=7 (for "
    'several streams {"nyc/flights": {"0.0": 12}})'
)
OUTPUT_PATTERN = r"^(stream|parquet|table):\S+( +[a-z_]+=\S+)*$"
MOST_PATTERN = "^(|none|[1-9][0-9]{0,4})$"
CHECKPOINT_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,199}$"
TAGS: Keywords = {
    "items": {"type": "string", "pattern": TAG_PATTERN}, "maxItems": 100, "uniqueItems": True,
}  # fmt: skip
ENGINES = ("auto", "spark", "pyarrow")  # what computes
AGES = ["12 h", "7 d", "30 d", "none"]  # examples of amounts, and of starting points
SIZES = ["500 MB", "2 GB", "none"]
STARTING_POINTS = ["head", "tail", "time 2026-01-01T00:00:00Z", "0.0=12, 1.0=7"]
# The longest texts that people write: cuts of 10,000 segments, 10,000 columns.
LONGEST_CUT, LONGEST_COLUMNS = 500_000, 500_000
LONGEST_OBJECT = 100_000  # as JSON
# What a text must be, for the sentences of errors.
RENAME_PATTERN = r"^\s*\S.*->\s*\S.*$"
DEFAULT_PATTERN = r"^\s*[^\s=][^=]*=.*$"
TEXTS = {
    LINE_PATTERN: "a text on one line without control characters",
    AGE_PATTERN: AGE,
    SIZE_PATTERN: SIZE,
    ADJUNCT_STORE_PATTERN: f"an adjunct store's name, scope/name, each part of {RULE}",
    STREAM_PATTERN: f"a stream's name, scope/stream, each part of {RULE}",
    READABLE_STREAM_PATTERN: f"a stream's name, scope/stream, each part of {RULE}",
    READER_GROUP_PATTERN: f"a reader group's name of {RULE}",
    MOST_PATTERN: "a whole number of at most five digits, or none for no limit",
    SEGMENT_PATTERN: "a segment as number.epoch, such as 5.1",
    FUNCTION_PATTERN: "a function as module:function, such as flights.delays:partial_statistics",
    OUTPUT_PATTERN: "an output as stream:scope/stream, parquet:folder or table:schema.table, "
    "followed by its options, such as places=yes",
    CHECKPOINT_PATTERN: "a name of at most 200 letters, digits, blanks and . _ : -, beginning "
    "with a letter or digit",
    LABEL_PATTERN: "a label of at most 63 letters, digits and . _ -, beginning with a letter "
    "or digit",
    TAG_PATTERN: TAG,
    RENAME_PATTERN: "a change of name as old -> new, such as gate -> exit",
    DEFAULT_PATTERN: "a default as column = value, such as gate = unknown",
}


def argument(
    title: str,
    description: str,
    default: T | EllipsisType = ...,
    *,
    section: str = "",
    examples: Sequence[str] = (),
    multiline: bool = False,
    names: str = "",
    in_forms: T | None = None,
    beside: str = "",
    unless: str = "",
    **schema: Unpack[Keywords],
) -> T:
    """Return a field of a form.

    `section`: the title of the collapsed part of the form that has it; without one it is in the
    part that is open at first, for what is required and what most people fill in. `examples`: what
    a text field proposes. `multiline`: whether its text has several lines, which other fields would
    make one of. `names`: of what it names one or some that exist (stream, reader_group,
    adjunct_store). `in_forms`: the default that a person begins with, where it is another one than
    that of programs and commands. `beside`, `unless`: the argument beside which alone it counts,
    and the one beside which it does not (`check_effects`). `schema`: JSON schema keywords (pattern,
    enum, minimum ...).
    """
    shown: dict[str, object] = {"section": section} if section else {}
    shown |= {"examples": list(examples)} if examples else {}
    shown |= {"format": "multiline"} if multiline else {}
    metadata = {
        "title": title, "description": description, "schema": schema, "shown": shown,
        "names": names, "in_forms": in_forms, "beside": beside, "unless": unless,
    }  # fmt: skip
    made: T
    if isinstance(default, EllipsisType):
        made = field(metadata=metadata)
    elif isinstance(default, (list, dict)):
        made = field(default_factory=lambda: copy(default), metadata=metadata)
    else:
        made = field(default=default, metadata=metadata)
    return made


def stream_argument(
    description: str = "The stream, as scope/stream, such as shop/orders.",
    pattern: str = STREAM_PATTERN,
    *,
    new: bool = False,
) -> str:
    """Return a field for the name of a stream: of one that exists, unless `new`."""
    names = "" if new else "stream"
    return argument("Stream", description, pattern=pattern, names=names)


def streams_argument(description: str, *, checked: bool = False) -> list[str]:
    """Return a field for the names of streams; if it is empty, the action chooses some. `checked`:
    whether it is refused early that one does not exist."""
    return argument(
        "Streams", description, [], names="stream" if checked else "",
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, maxItems=20_000,
    )  # fmt: skip


def reader_group_argument(
    description: str = "The reader group's name.", *, new: bool = False
) -> str:
    """Return a field for the name of a reader group: of one that exists, unless `new`."""
    names = "" if new else "reader_group"
    return argument("Reader group", description, pattern=READER_GROUP_PATTERN, names=names)


def dry_run_argument(description: str) -> bool:
    """Return the argument by which an action only says what it would do, as its form begins."""
    return argument("Dry run", description, False, in_forms=True)


def loss_argument() -> bool:
    """Return the argument that allows a change by which groups lose unread events."""
    return argument(
        "Allow loss",
        "Make the change even if reader groups lose unread events, because retention deletes what "
        "it releases. Without it such a change is refused, with the numbers.",
        False,
        section="Retention",
    )


def truncated_argument(section: str = "") -> bool:
    """Return the argument that allows a group to begin at the head where events are truncated."""
    return argument(
        "Allow truncated",
        "Begin at the head if the starting point lies before it, and say how many events are "
        "missing. Without it such a starting point is refused, with the number.",
        False,
        section=section,
    )


def is_required(known: Field[object]) -> bool:
    """Return whether an argument has no default."""
    return known.default is MISSING and known.default_factory is MISSING


def json_schema(form: type[Form], known: Field[object]) -> Schema:
    """Return the JSON schema of one argument, as the job takes it."""
    kind = _kinds(form)[known.name]
    types: dict[object, str] = {str: "string", int: "integer", bool: "boolean", dict: "object"}
    keywords: Keywords = known.metadata["schema"]
    schema: Schema = {"type": types.get(get_origin(kind) or kind, "array"), **keywords}
    if "items" in schema:
        schema["items"] = _storable(schema["items"])
    return _storable(schema)


def _storable(schema: Schema) -> Schema:
    """Return the schema; a text in it must not contain NUL, which Postgres does not store."""
    if schema["type"] != "string" or "pattern" in schema or "enum" in schema:
        return schema
    return {**schema, "pattern": TEXT_PATTERN}


def parse(form: type[A], given: Mapping[str, object]) -> A:
    """Return the checked arguments. A null is what the form begins with. Raises InvalidInput naming
    the argument, its value and what is allowed."""
    known = {f.name: f for f in fields(form)}
    for name in given:
        if name not in known:
            meant = difflib.get_close_matches(name, known, n=1)
            hint = f" (did you mean {meant[0]!r}?)" if meant else ""
            raise InvalidInput(
                "argument_invalid",
                f"there is no argument {name!r}{hint}; there are {', '.join(known) or 'none'}.",
            )
    values: dict[str, object] = {}
    for name, one in known.items():
        schema = json_schema(form, one)
        value = as_meant(given.get(name), schema)
        if holds_nothing(value, schema):
            said = f"{called(name)} holds '', which is not an entry; leave it out."
            raise InvalidInput("argument_invalid", said)
        if is_required(one):
            if name not in given:
                raise InvalidInput(
                    "argument_missing", f"{called(name)} is missing: {one.metadata['description']}"
                )
        elif (value is None or (_is_text(schema) and value == "")) and (  # an emptied field
            name not in given or (value := one.metadata["in_forms"]) is None
        ):
            continue
        for part in _texts(value):
            if why := unstorable(part):
                holds = "is" if isinstance(value, str) else "holds"
                raise InvalidInput(
                    "argument_invalid",
                    f"{called(name)} {holds} {shortened(part)}, which can't be stored as text: it "
                    f"{why}.",
                )
        if not _fits(value, schema) or holds_quotes(value):
            raise _refusal(name, value, schema)
        values[name] = value
    return form(**values)


def default_of(known: Field[object]) -> object:
    """Return what a field of a form is if it is not given; MISSING if it must be."""
    return known.default if known.default_factory is MISSING else known.default_factory()


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value: itself, or those in a list or in a JSON object."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, dict)):
        for part in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from _texts(part)


def _is_text(schema: Schema) -> bool:
    """Return whether the field is one to write in, not one to choose from."""
    return schema["type"] == "string" and "enum" not in schema


def _refusal(name: str, value: object, schema: Schema) -> InvalidInput:
    """Return the error for a value that does not fit."""
    if isinstance(value, list) and schema["type"] == "array":
        for part in value:
            if (meant := within_quotes(part)) is not None:
                return InvalidInput(
                    "argument_invalid",
                    f"{called(name)} holds {part!r}, which is not one entry; write {meant} as "
                    "an entry of its own, without brackets, quotes and commas.",
                )
            if not _fits(part, schema["items"]):
                wanted = _wanted(schema["items"], part)
                return InvalidInput(
                    "argument_invalid",
                    f"{called(name)} holds {shortened(part)}, which is not {wanted}.",
                )
        if schema.get("uniqueItems") and len(set(value)) < len(value):
            twice = next(part for part in value if value.count(part) > 1)
            return InvalidInput(
                "argument_invalid",
                f"{called(name)} holds {shortened(twice)} {value.count(twice)} times; give it "
                "once.",
            )
    return InvalidInput(
        "argument_invalid",
        f"{called(name)} is {shortened(value)}, which is not {_wanted(schema, value)}.",
    )


def _wanted(schema: Schema, value: object) -> str:
    """Return in words what fits a schema; with the longest length if the value is longer."""
    most = schema.get("maxLength", schema.get("maxItems"))
    if not isinstance(value, (str, list)) or most is None or len(value) <= most:
        most = None
    if "enum" in schema:
        return f"one of {', '.join(schema['enum'])}"
    if (pattern := schema.get("pattern", TEXT_PATTERN)) != TEXT_PATTERN:
        return TEXTS[pattern] + ("" if most is None else f" and at most {most:,} long")
    what = {
        "string": "a text", "boolean": "true or false", "integer": "a whole number",
        "array": "a list",
        "object": f"a JSON object of at most {LONGEST_OBJECT:,} characters",
    }[schema["type"]]  # fmt: skip
    bounds = [
        f"{says} {bound:,}"
        for bound, says in (
            (schema.get("minimum"), "at least"), (schema.get("maximum"), "at most"),
            (schema.get("minLength"), "with a length of at least"),
            (schema.get("minItems"), "with a length of at least"),
            (most, "with a length of at most"),
        )
        if bound is not None
    ]  # fmt: skip
    return f"{what} {' and '.join(bounds)}".rstrip()


def _is_json(value: object) -> bool:
    """Return whether Postgres stores a value and gives it back as it is: not dates, numbers as
    names, or NaN."""
    try:
        written = json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return False
    return len(written) <= LONGEST_OBJECT and json.loads(written) == value


def _fits(value: object, schema: Schema) -> bool:
    """Return whether a value fits the few JSON schema keywords that the forms use."""
    kinds = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if isinstance(value, bool):
        return schema["type"] == "boolean"
    if isinstance(value, list):
        return (
            schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value))
            and all(_fits(part, schema["items"]) for part in value)
            and not (schema.get("uniqueItems") and len(set(value)) < len(value))
        )
    if isinstance(value, dict):
        return _is_json(value)
    if isinstance(value, str):
        return (
            value in schema.get("enum", [value])
            and re.fullmatch(schema.get("pattern", ".*"), value, re.DOTALL) is not None
            and schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value))
        )
    assert isinstance(value, int)
    return schema.get("minimum", value) <= value <= schema.get("maximum", value)
