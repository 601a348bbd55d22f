"""Print what commands return: tables for people, JSON for programs."""

import base64
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import TypeGuard

from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, say_age, say_size
from weir.operations.jobs import FORMS

_WIDEST = 60  # characters of a cell that people see
_NUMBERS = (int, float)


# Settings that people write with a unit, and programs get as seconds and bytes.
@cache
def _amounts() -> dict[str, Callable[[int], str]]:
    return {
        one.name: say
        for form in FORMS.values()
        for one in fields(form)
        for pattern, say in ((AGE_PATTERN, say_age), (SIZE_PATTERN, say_size))
        if one.metadata["schema"].get("pattern") == pattern
    }


# Characters with which an event could move the cursor, hide text, or change the terminal itself.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """Return a text with its control characters, but line feeds and tabs, as escapes that people
    see."""
    return _CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def print_json(value: object) -> None:
    """Print one value as JSON on a line of its own. Times are ISO 8601 in UTC, durations are
    seconds, bytes are base64, and numbers that JSON does not have are the texts NaN, Infinity and
    -Infinity."""
    print(as_json(value, ascii_only=not _holds_all()), flush=True)


def _holds_all() -> bool:
    """Return whether the standard output can hold every character."""
    return (sys.stdout.encoding or "utf-8").lower().replace("_", "-").startswith("utf")


def as_json(value: object, *, ascii_only: bool = False) -> str:
    """Return a value as JSON, in the form of `print_json`."""
    try:
        text = json.dumps(value, default=_as_json, ensure_ascii=ascii_only, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(value), default=_as_json, ensure_ascii=ascii_only)
    # JSON itself escapes what is below a blank; a terminal also obeys some of what is above.
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(value: object) -> object:
    """Return a value with texts in place of numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


def table(rows: Sequence[Mapping[str, object]], widest: int = _WIDEST) -> str:
    """Return rows as lines of text under their column names. Numbers are aligned to the right, and
    on a terminal texts are cut off after `widest` characters; elsewhere, as in a pipe, nothing is.
    There must be at least one row."""
    if not sys.stdout.isatty():
        widest = sys.maxsize
    names = list(rows[0])
    titles = [_cell(name) for name in names]
    cells = [[_cell(row[name], widest) for name in names] for row in rows]
    right = [
        all(isinstance(row[n], _NUMBERS) and not isinstance(row[n], bool) for row in rows)
        for n in names
    ]
    widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
    lines = [
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in [titles, *cells]
    ]
    return "\n".join(lines)


def events(rows: Iterable[Mapping[str, object]]) -> list[dict[str, object]]:
    """Return events for `table`: nested values as JSON, so that an empty list is none that is
    missing, and a list of one text with a comma is none of two."""
    return [
        {
            name: as_json(value) if isinstance(value, (dict, list, tuple)) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def records(values: Mapping[str, object]) -> str:
    """Return a report as lines of `name  value`. Lists of records become tables of their own, and
    the ages and sizes of settings are written as a person gives them: 30 d, 500 MB."""
    lines = []
    longest = max(map(len, values), default=0)
    for name, value in values.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            same = all(one.keys() == value[0].keys() for one in value)
            lines.append(f"{name}:")
            shown = table(value) if same else "\n".join(map(_text, value))
            lines += ["  " + line for line in shown.splitlines()]
        elif _are_sentences(value):
            lines += [f"{name}:", *("  " + visible(one) for one in value)]
        else:
            if name in _amounts() and isinstance(value, int):
                # As it can be given again.
                value = _amounts()[name](value).replace(",", "") if value else NONE
            lines.append(f"{name.ljust(longest)}  {_text(value)}")
    return "\n".join(lines)


def _are_sentences(value: object) -> TypeGuard[Sequence[str]]:
    return (
        isinstance(value, (list, tuple))
        and all(isinstance(one, str) for one in value)
        and any(" " in one for one in value)
    )


def complain(sentence: str) -> None:
    """Print why a command failed, for people."""
    print(visible(f"weir: {sentence}"), file=sys.stderr, flush=True)


def note(line: str) -> None:
    """Print something beside the result, for people: not on the standard output, which programs
    read."""
    print(visible(line), file=sys.stderr, flush=True)


def print_lines(rows: Iterable[Mapping[str, object]]) -> None:
    """Print each row as JSON on a line of its own."""
    for row in rows:
        print_json(row)


def _cell(value: object, widest: int = _WIDEST) -> str:
    text = " ".join(_text(value).split())
    return text if len(text) <= widest else text[: widest - 3] + "..."


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, timedelta):
        return duration(value)
    if isinstance(value, (dict, list, tuple)) and not value:
        return "-"
    if isinstance(value, (list, tuple)) and all(isinstance(one, str) for one in value):
        return visible(", ".join(value))
    if isinstance(value, (dict, list, tuple)):
        return visible(as_json(value))
    return visible(str(value))


def duration(value: timedelta) -> str:
    """Return a duration as a person says it: 12 s, 5 min, 3 h, 2 d."""
    seconds = value.total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if abs(seconds) >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _as_json(value: object) -> object:
    if isinstance(value, datetime):
        return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return str(value)
