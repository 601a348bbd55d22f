"""Read lines of json exactly: each number as the text that the file has, no name twice.

A line has objects: one, several one after another, several with commas, or lists of them. What of
it can't be read is malformed as a whole: the line, or the value among several without commas.
"""

import gc
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from weir.kernel.texts import quoted

LONGEST_LINE = 16 << 20  # bytes
DEEPEST = 250  # lists and objects within each other; Python's parser takes some hundreds more
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Strings, and the places where a value ends and another begins.
_BETWEEN = re.compile(rf"{_STRING}|(?<=[}}\]])[ \t]*+(?=[{{\[])", re.DOTALL)
_BLANKS = " \t"
_SURROGATE = re.compile("[\ud800-\udfff]")


class Number(str):
    """A number as it is written."""

    __slots__ = ()


Json: TypeAlias = bool | str | list["Json"] | dict[str, "Json"] | None  # numbers are `Number`


class _Unfit(ValueError):
    """An object has a name twice, or an empty one. `name`: the one that it has twice."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


@dataclass
class Objects:
    """The objects of a text. `numbers`: each object has one, and what is malformed; `texts`: what
    an object is of, and `firsts`: the number of the first object of it; `malformed`: numbers and
    texts; `twice`: a name that an object has twice; `longest`: bytes of the longest line;
    `example`: the first line that is not blank."""

    rows: list[dict[str, Json]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)
    malformed: list[tuple[int, str]] = field(default_factory=list)
    count: int = 0
    twice: str = ""
    longest: int = 0
    example: str = ""

    def add(self, text: str, values: list[dict[str, Json]] | None) -> None:
        """Add what a text has; None: it is malformed."""
        first = self.count
        if values is None:
            self.malformed.append((first, text))
            self.count += 1
            return
        self.rows += values
        self.texts += [text] * len(values)
        self.firsts += [first] * len(values)
        self.count += len(values)
        self.numbers += range(first, self.count)


def read_json(text: bytes, first: int = 0) -> Objects:
    """Return the objects of lines. `first`: the number of the first of them."""
    # Nothing here refers to itself, and to look for that takes as long as all else.
    enabled = gc.isenabled()
    gc.disable()
    try:
        return _read(text, Objects(count=first))
    finally:
        if enabled:
            gc.enable()


def _read(text: bytes, found: Objects) -> Objects:
    try:
        plain = text.decode()
    except UnicodeDecodeError:
        plain = text.decode(errors="surrogateescape")
    careful = len(text) > LONGEST_LINE or "\0" in plain or bool(_SURROGATE.search(plain))
    escaped = "\\ud" in plain or "\\uD" in plain  # maybe half a character
    lines = re.split("\r\n?|\n", plain) if "\r" in plain else plain.split("\n")
    for line in lines:
        if not careful and not _maybe_deep(line):
            try:
                value, end = _scan(line, 0)
                if (
                    end == len(line)
                    and type(value) is dict
                    and not (escaped and _may_have_halves(value))
                ):
                    number = found.count
                    found.rows.append(value)
                    found.texts.append(line)
                    found.numbers.append(number)
                    found.firsts.append(number)
                    found.count = number + 1
                    continue
            except (ValueError, StopIteration):
                pass
        _add_line(found, line)
    found.longest = max(map(_bytes, lines))
    blank = (line.strip(_BLANKS) for line in lines)
    found.example = next((line for line in blank if line), "")[:80]
    return found


def written(value: Json) -> str:
    """Return a value as json without blanks, its numbers as they are written."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, dict):
        items = []
        for name, one in value.items():
            items.append(f"{quoted(name)}:{written(one)}")
        return "{" + ",".join(items) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    return "null" if value is None else str(value).lower()


def _add_line(found: Objects, line: str) -> None:
    line = line.lstrip("\ufeff")
    if not line.strip(_BLANKS):
        return
    unfit = "\0" in line or _SURROGATE.search(line) or _bytes(line) > LONGEST_LINE
    if unfit:
        raw = line[:LONGEST_LINE].encode(errors="surrogateescape")
        found.add(raw.decode(errors="replace").replace("\0", "\ufffd"), None)
        return
    values = _values(found, line)
    pieces = list(_pieces(line)) if values is None else []
    if len(pieces) < 2:
        found.add(line, values)
        return
    for piece in pieces:
        if piece.strip(_BLANKS):
            found.add(piece, _values(found, piece))


def _pieces(line: str) -> Iterator[str]:
    """Yield the values of a line that stand one after another."""
    begin = 0
    for match in _BETWEEN.finditer(line):
        if not match[0].startswith('"'):
            yield line[begin : match.start()]
            begin = match.end()
    yield line[begin:]


def _values(found: Objects, text: str) -> list[dict[str, Json]] | None:
    """Return the objects of a text: of a list, or with commas between them; None if there is
    anything else."""
    whole = text.strip(_BLANKS)
    whole = whole if whole.startswith("[") else f"[{whole}]"
    if _is_deep(whole):
        return None
    try:
        values, end = _scan(whole, 0)
    except _Unfit as error:
        found.twice = found.twice or error.name
        return None
    except (ValueError, StopIteration):
        return None
    assert isinstance(values, list), whole
    objects = [one for one in values if type(one) is dict]
    if end < len(whole) or len(objects) < len(values):
        return None
    return None if _may_have_halves(values) and _SURROGATE.search(written(values)) else objects


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _Unfit(next(name for name in names if names.count(name) > 1))
    if "" in found:
        raise _Unfit("")
    return found


_scan: Callable[[str, int], tuple[Json, int]] = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=Number, parse_int=Number, parse_constant=Number
).scan_once  # type: ignore[attr-defined]  # its method, which the types of Python lack


def _may_have_halves(value: Json) -> bool:
    """Return whether a text may have half a character, which Python shows by its number."""
    return "\\ud" in repr(value)


def _maybe_deep(text: str) -> bool:
    return len(text) > DEEPEST and text.count("{") + text.count("[") > DEEPEST


def _is_deep(text: str) -> bool:
    """Return whether a text has lists and objects within each other that are too many."""
    if not _maybe_deep(text):
        return False
    depth = deepest = 0
    for sign in re.findall(rf"{_STRING}|[\[\]{{}}]", text, re.DOTALL):
        if sign in ("[", "{"):
            depth += 1
            deepest = max(deepest, depth)
        elif sign in ("]", "}"):
            depth -= 1
    return deepest > DEEPEST


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
