"""Columns that people declare, such as `id BIGINT, tags ARRAY<STRING>`, in the types of Spark SQL,
read without Spark."""

import re
from collections.abc import Iterator

from weir.errors import InvalidInput
from weir.model.names import shortened
from weir.model.schema import Field, Kind, list_of, map_of, plain

_TOKEN = re.compile(
    r"""\s*(?:(?P<name>`(?:[^`]|``)*`)|(?P<word>\w+)|(?P<sign>[<>(),:])
    |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"))""",
    re.VERBOSE | re.DOTALL,
)
_TYPES = {
    "boolean": "boolean", "tinyint": "byte", "byte": "byte", "smallint": "short", "short": "short",
    "int": "integer", "integer": "integer", "bigint": "long", "long": "long", "float": "float",
    "real": "float", "double": "double", "date": "date", "timestamp": "timestamp",
    "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz", "string": "string",
    "binary": "binary", "variant": "variant", "void": "void",
}  # fmt: skip
_DECIMALS = ("decimal", "dec", "numeric")
_DEEPEST = 200  # types within types, before others say that it is too deep
_ESCAPES = {"0": "\0", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "Z": "\x1a"}


def declared_columns(text: str, what: str = "the columns") -> list[Field]:
    """Return declared columns in the form of a stream's. Raises InvalidInput if they can't be read,
    and for what no stream has."""
    if "${" in text:
        raise InvalidInput(
            "columns_invalid",
            f"{what} {shortened(text)} contain '${{', which a program may replace; leave it out.",
        )
    found = plain(_Reader(text, what).fields(""))
    for field in found:
        if not field["nullable"]:
            raise InvalidInput(
                "columns_invalid",
                f"column {field['name']!r} is declared NOT NULL, which a stream does not check; "
                "leave NOT NULL out (on_missing_key says what happens to rows without a routing "
                "key).",
            )
    return found


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str, what: str) -> None:
        self._text, self._what = text, what
        self._tokens = list(self._read(text))
        self._at = self._depth = 0

    def _read(self, text: str) -> Iterator[tuple[str, str]]:
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                raise self._wrong(f"at {text[place : place + 20].strip()!r}")
            place = match.end()
            group = match.lastgroup or ""
            yield group, match[group]

    def fields(self, end: str) -> list[Field]:
        """Return the columns up to a sign that ends them, or to the end of the text."""
        found = []
        while True:
            found.append(self._field())
            if self._peek() == ",":
                self._at += 1
                continue
            if self._peek() != end:
                raise self._wrong(f"at {self._peek() or 'its end'!r}")
            self._at += 1
            return found

    def _field(self) -> Field:
        name = self._name()
        if self._peek() == ":":
            self._at += 1
        kind, nullable, comment = self._kind(), True, dict[str, object]()
        if self._peek() == "not":
            self._at += 1
            self._take("null")
            nullable = False
        if self._peek() == "comment":
            self._at += 1
            comment = {"comment": self._string()}
        return {"name": name, "type": kind, "nullable": nullable, "metadata": comment}

    def _kind(self) -> Kind:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._wrong("it has types within types within types")
        try:
            return self._kind_at()
        finally:
            self._depth -= 1

    def _kind_at(self) -> Kind:
        word = self._word()
        if word in ("array", "map", "struct"):
            self._take("<")
            if word == "struct":
                if self._peek() == ">":
                    self._at += 1
                    return {"type": "struct", "fields": []}
                return {"type": "struct", "fields": self.fields(">")}
            first = self._kind()
            if word == "array":
                self._take(">")
                return list_of(first)
            self._take(",")
            second = self._kind()
            self._take(">")
            return map_of(first, second)
        if word in _DECIMALS:
            digits = self._numbers() or [10]
            precision, scale = digits[0], digits[1] if len(digits) > 1 else 0
            if len(digits) > 2 or not 1 <= precision <= 38 or scale > precision:
                raise self._wrong(f"{word}({', '.join(map(str, digits))}) has no such digits")
            return f"decimal({precision},{scale})"
        if word not in _TYPES:
            raise self._wrong(f"there is no type {word.upper()}")
        return _TYPES[word]

    def _numbers(self) -> list[int]:
        """Return the numbers in brackets that follow, if any do."""
        if self._peek() != "(":
            return []
        self._at += 1
        found = []
        while True:
            word = self._word()
            if not (word.isascii() and word.isdigit()):
                raise self._wrong(f"at {word!r}")
            found.append(int(word[:9]))
            if self._peek() == ",":
                self._at += 1
                continue
            self._take(")")
            return found

    def _peek(self) -> str:
        """Return what comes next, in lower case unless it is a name in quotes; empty at the end."""
        if self._at >= len(self._tokens):
            return ""
        group, token = self._tokens[self._at]
        return token.lower() if group in ("word", "sign") else token

    def _take(self, wanted: str) -> None:
        if self._peek() != wanted:
            raise self._wrong(f"{wanted.upper()!r} is missing at {self._peek() or 'its end'!r}")
        self._at += 1

    def _word(self) -> str:
        if self._at >= len(self._tokens) or self._tokens[self._at][0] != "word":
            raise self._wrong(f"a type is missing at {self._peek() or 'its end'!r}")
        self._at += 1
        return self._tokens[self._at - 1][1].lower()

    def _name(self) -> str:
        group, token = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if group not in ("word", "name"):
            raise self._wrong(f"a name is missing at {token or 'its end'!r}")
        self._at += 1
        return token[1:-1].replace("``", "`") if group == "name" else token

    def _string(self) -> str:
        group, token = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        if group != "text":
            raise self._wrong(f"a text in quotes is missing at {token or 'its end'!r}")
        self._at += 1
        inner = token[1:-1].replace(token[0] * 2, token[0])
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), inner, flags=re.S)

    def _wrong(self, why: str) -> InvalidInput:
        return InvalidInput(
            "columns_invalid",
            f"{self._what} {shortened(self._text)} can't be read ({why}); write, for example, id "
            "BIGINT, name STRING.",
        )
