"""What the content of a field means: a text, or the entries of a list, one a line in a form."""

import re
from typing import TypedDict

from weir.front_ends import in_form

OUTSIDE_FORMS = "outside forms"
TEXT_PATTERN = r"^[^\x00]*$"
LINE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]*$"


class Keywords(TypedDict, total=False):
    """The keywords of JSON schema that arguments have. `exact`: whether a line of a list is meant
    as it is."""

    pattern: str
    enum: list[str]
    minimum: int
    maximum: int
    minLength: int
    maxLength: int
    items: "Schema"
    minItems: int
    maxItems: int
    uniqueItems: bool
    exact: bool | str


class Schema(Keywords):
    """The JSON schema of an argument, or of the entries of one."""

    type: str


def holds_nothing(value: object, schema: Schema) -> bool:
    """Return whether a list has an empty entry, which may be a key, but names nothing."""
    if not isinstance(value, list) or schema["type"] != "array":
        return False
    return "" in value and not schema["items"].get("exact")


def as_meant(value: object, schema: Schema) -> object:
    """Return what a person means by the content of a field: without the blanks around it, a list
    of a form without the blank lines beside others; an `exact` line as it is (`OUTSIDE_FORMS`: but
    in forms). Nothing but blank lines stays what it is: it does not mean an empty list, which often
    means all."""
    if isinstance(value, str) and schema.get("pattern", TEXT_PATTERN) != TEXT_PATTERN:
        return value.strip()
    if isinstance(value, list) and schema["type"] == "array":
        exact = schema["items"].get("exact")
        strip = not exact or (exact == OUTSIDE_FORMS and in_form())
        lines = [one.strip() if isinstance(one, str) and strip else one for one in value]
        if in_form() and any(one != "" for one in lines):
            lines = [one for one in lines if one != ""]
        return lines
    return value


def holds_quotes(value: object) -> bool:
    return isinstance(value, list) and any(within_quotes(part) is not None for part in value)


def within_quotes(line: object) -> str | None:
    """Return the first entry of a line that is a list as programs write it, `["a", "b"]` or `"a",`;
    None for any other line. In a form, each entry has a line of its own."""
    if not isinstance(line, str):
        return None
    found = re.fullmatch(r"""\[?\s*(["'])(.*?)\1\s*(,.*|\])?""", line, re.DOTALL)
    return found[2] if found else None
