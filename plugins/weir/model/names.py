"""Names of streams, reader groups and columns, checked before they become paths or SQL."""

import re
from collections import Counter
from collections.abc import Collection
from typing import NamedTuple
from unicodedata import normalize

from weir.errors import InvalidInput

PART = r"[a-z0-9][a-z0-9_-]{0,62}"
STREAM_PATTERN = rf"^{PART}/{PART}$"
READABLE_STREAM_PATTERN = rf"^{PART}/{PART}(\.rejected)?$"
READER_GROUP_PATTERN = rf"^{PART}$"
ADJUNCT_STORE_PATTERN = rf"^({PART})/({PART})$"
FUNCTION_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
LABEL_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
# Comes after "of" or "use".
RULE = "at most 63 lower-case letters, digits, '_' and '-', beginning with a letter or digit"
TAG_PATTERN = r"^([^\s-]|\S[^\n\r\t]{0,98}\S)$"
TAG = "a tag: a text of at most 100 characters without blanks at its ends, which is not only -"
REJECTED = ".rejected"

# Python's `$` also matches before a final newline, so names are matched whole.
_STREAM = re.compile(rf"({PART})/({PART}(?:\.rejected)?)")
_GROUP = re.compile(PART)
_LABEL = re.compile(LABEL_PATTERN)
_RESERVED_COLUMNS = {"_segment", "_offset", "_clock", "_metadata"}


class StreamName(NamedTuple):
    """The name of a stream, `scope/name`. That of a reserved stream ends in `.rejected`."""

    scope: str
    name: str

    def __str__(self) -> str:
        return f"{self.scope}/{self.name}"

    @property
    def rejected(self) -> "StreamName":
        """The name of the reserved stream for this stream's rejected rows."""
        return StreamName(self.scope, self.name + REJECTED)


def stream_name(text: str, *, reserved: bool = True) -> StreamName:
    """Parse `scope/stream`. With `reserved=False`, refuse the form `<stream>.rejected`.

    Raises InvalidInput with the rule.
    """
    match = _STREAM.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise InvalidInput(
            "name_invalid",
            f"{text!r} is not a valid stream name; write scope/stream, each part of {RULE}.",
        )
    if match[2].endswith(REJECTED) and not reserved:
        raise InvalidInput(
            "name_invalid",
            f"{text!r} is reserved for rejected rows; choose a name without a dot.",
        )
    return StreamName(match[1], match[2])


def reader_group_name(text: str) -> str:
    """Return the name of a reader group unchanged. Raises InvalidInput with the rule."""
    if not isinstance(text, str) or _GROUP.fullmatch(text) is None:
        raise InvalidInput(
            "name_invalid",
            f"{text!r} is not a valid name of a reader group; use {RULE}.",
        )
    return text


def adjunct_store_name(text: str) -> str:
    """Return the name of an adjunct store, `scope/name`, unchanged. Raises InvalidInput with the
    rule."""
    match = _STREAM.fullmatch(text) if isinstance(text, str) else None
    if match is None or match[2].endswith(REJECTED):
        raise InvalidInput(
            "name_invalid",
            f"{text!r} is not a valid name of an adjunct store; write scope/name, each part "
            f"of {RULE}.",
        )
    return text


def reader_label(text: str) -> str:
    """Return the label of a reader unchanged. Raises InvalidInput with the rule."""
    if _LABEL.fullmatch(text) is None:
        raise InvalidInput(
            "name_invalid",
            f"{text!r} is not a valid label of a reader; use at most 63 letters, digits, '.', '_' "
            "and '-', beginning with a letter or digit.",
        )
    return text


def unstorable(text: str) -> str:
    """Return why Postgres cannot store a text, as a part of a sentence; empty if it can."""
    if "\0" in text:
        return "has a NUL character (\\x00)"
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return f"has {text[error.start]!r}, which is half a character: it is not UTF-8"
    return ""


def check_text(what: str, text: str) -> str:
    """Return a text unchanged if Postgres can store it. Raises InvalidInput with its value."""
    if why := unstorable(text):
        raise InvalidInput("argument_invalid", f"{what} {shortened(text)} {why}; write it without.")
    return text


def look_alike(name: str, others: Collection[str]) -> str:
    """Say that a name looks like another one, as an accent is part of a letter or follows it, as a
    part of a sentence; empty if it does not."""
    whole = normalize("NFC", name)
    alike = next((one for one in others if one != name and normalize("NFC", one) == whole), None)
    return f", and {name!a} only looks like {alike!a}" if alike is not None else ""


# Bytes of a routing key, so that whatever names one can have it: with three characters per byte the
# address of a page stays below the 64 KiB that servers take.
LONGEST_KEY = 16_384


def unusable_key(key: str) -> str:
    """Return why no event can have a routing key, as a part of a sentence; empty if one can."""
    if why := unstorable(key):
        return why
    if (size := len(key.encode())) > LONGEST_KEY:
        return f"has {size:,} bytes, but a key at most {LONGEST_KEY:,}"
    return ""


def check_key(key: str) -> str:
    """Return a key unchanged if an event can have it. Raises InvalidInput with its value."""
    if why := unusable_key(key):
        raise InvalidInput(
            "argument_invalid", f"key {shortened(key)} {why}, so no event has it; correct it."
        )
    return key


def cut_off(text: str, most: int) -> str:
    """Return a text, cut off after `most` characters."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text):,} characters)"


def shortened(value: object, most: int = 200) -> str:
    """Return a value as errors quote it: `repr`, cut off after `most` characters."""
    return cut_off(repr(value), most)


def check_user_columns(columns: list[str]) -> None:
    """Check the names of a user's columns.

    Raises InvalidInput for a reserved name (in any case of letters), for one that occurs twice, and
    for one that Postgres cannot store.
    """
    for column in columns:
        check_text("column", column)
        lower = column.lower()
        if lower.startswith("_weir") or lower in _RESERVED_COLUMNS:
            raise InvalidInput(
                "columns_invalid",
                f"column {column!r} has a reserved name (_weir... and "
                f"{', '.join(sorted(_RESERVED_COLUMNS))} are reserved); rename it.",
            )
    counted = Counter(column.lower() for column in columns)
    duplicates = {c for c in columns if counted[c.lower()] > 1}
    if duplicates:
        raise InvalidInput(
            "columns_invalid",
            f"column {sorted(duplicates)[0]!r} occurs twice (upper and lower case count as the "
            "same); rename one of them.",
        )
