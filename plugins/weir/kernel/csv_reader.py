"""Read csv files exactly: each value as the text that the file has, each row with its number.

pyarrow parses files in which quotes stand only where RFC 4180 has them, which is checked first. All
others, and those with comments or an escape, are taken apart here, field by field, by the rules
that `field_pattern` has.
"""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from weir.kernel.text_options import TextOptions

# A line of nothing else is no row, as Spark trims it, also where one of these separates values.
BLANKS = "".join(map(chr, range(33)))
_BLANK_LINE = re.compile(rb"^[\x00-\x09\x0b\x0c\x0e-\x20]+\r?$", re.MULTILINE)
_PIECE = 16 << 20
_LINE_ENDS = (10, 13)
MOST_IRREGULAR = 16 << 20  # bytes: each takes 25 of memory, and ten seconds go by


class NotClosed(Exception):
    """Quotes of a file are never closed. `line`: the one in which they open."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class NotRegular(Exception):
    """A file is too large to be taken apart field by field."""


@dataclass(frozen=True)
class CsvRows:
    """The rows of a csv file as texts, null where nothing stands. `numbers`: of the rows among all
    rows of the file, from 0; `malformed`: the number and the text of each row that has more or
    fewer values than there are columns."""

    table: pa.Table
    numbers: np.ndarray
    malformed: list[tuple[int, str]]


def read_csv(text: bytes, names: Sequence[str], how: TextOptions) -> CsvRows:
    """Return the rows of a text in UTF-8 that begins with a csv file's header line, if it has one.
    Raises NotClosed, and NotRegular."""
    plain = not (how.comment or how.escape not in ("", how.quote))
    ascii_ = (how.separator + how.quote).isascii()
    regular = plain and ascii_ and _is_regular(text, how)
    # Of as many values as there are columns, pyarrow takes a line of blanks for a row.
    if regular and (len(names) == 1 or how.separator in BLANKS) and _BLANK_LINE.search(text):
        regular = False
    if not regular and len(text) > MOST_IRREGULAR:
        raise NotRegular
    found = _by_pyarrow(text, names, how) if regular else _by_fields(text, names, how)
    if not how.null_value:
        return found
    columns = [
        pc.if_else(pc.equal(one, how.null_value), pa.scalar(None, pa.string()), one)
        for one in found.table.columns
    ]
    return CsvRows(pa.table(columns, names=list(names)), found.numbers, found.malformed)


def encoded(raw: bytes, how: TextOptions) -> bytes:
    """Return a file's bytes in UTF-8, without a mark of the byte order and the lines to skip.
    Raises UnicodeDecodeError for bytes that the encoding does not have; UTF-8 is not checked."""
    if how.encoding == "utf-8":
        text = raw.removeprefix(codecs.BOM_UTF8)
    else:
        text = raw.decode(how.encoding).removeprefix("\ufeff").encode()
    place = 0
    for _ in range(how.skip_lines):
        match = _LINE_END.search(text, place)
        place = match.end() if match else len(text)
    return text[place:]


_LINE_END = re.compile(rb"\r\n?|\n")
_LINE = re.compile(_LINE_END.pattern.decode())


def is_utf8(text: bytes) -> bool:
    """Return whether a text is UTF-8."""
    size = np.array([0, len(text)], np.int64)
    whole = pa.Array.from_buffers(
        pa.large_string(), 1, [None, pa.py_buffer(size), pa.py_buffer(text)]
    )
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _is_regular(text: bytes, how: TextOptions) -> bool:
    """Return whether each quote opens a field, closes one, or is doubled within one."""
    if not how.quote:
        return True
    quote, whole = ord(how.quote), np.frombuffer(text, np.uint8)
    outside = np.zeros(256, bool)
    outside[[ord(how.separator), *_LINE_ENDS]] = True
    beside = outside.copy()
    beside[quote] = True
    count = 0
    for start in range(0, len(whole), _PIECE):
        places = np.flatnonzero(whole[start : start + _PIECE] == quote) + start
        opens, closes = places[count % 2 :: 2], places[1 - count % 2 :: 2]
        count += len(places)
        # What opens after a quote is the second of a doubled one: the first has closed.
        if opens.size and not beside[whole[opens[opens > 0] - 1]].all():
            return False
        if closes.size and not beside[whole[closes[closes + 1 < len(whole)] + 1]].all():
            return False
    return count % 2 == 0


def _by_pyarrow(text: bytes, names: Sequence[str], how: TextOptions) -> CsvRows:
    places = [str(i) for i in range(len(names))]
    found: list[tuple[int, str]] = []

    def skip(row: csv.InvalidRow) -> str:
        if row.text.strip(BLANKS):
            found.append((row.number - 1, row.text))
        else:
            blank.append(row.number - 1)
        return "skip"

    blank: list[int] = []  # lines of blanks, which are no rows

    def read(*, strict: bool) -> pa.Table:
        return csv.read_csv(
            pa.BufferReader(text),
            # One block: a row may be as long as the file. Only one thread numbers rows.
            read_options=csv.ReadOptions(
                column_names=places, block_size=max(len(text), 1), use_threads=strict
            ),
            parse_options=csv.ParseOptions(
                delimiter=how.separator, quote_char=how.quote or False, newlines_in_values=True,
                invalid_row_handler=None if strict else skip,
            ),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(places, pa.string()), strings_can_be_null=True,
                quoted_strings_can_be_null=False, null_values=[""], check_utf8=False,
            ),
        )  # fmt: skip

    if not text.strip(b"\r\n"):
        return CsvRows(_empty(names), np.arange(0), [])
    try:
        table = read(strict=True)
    except pa.ArrowInvalid:
        table = read(strict=False)
    total = table.num_rows + len(found) + len(blank)
    kept = np.ones(total, bool)
    kept[[number for number, _ in found] + blank] = False
    rows = np.ones(total, bool)
    rows[blank] = False
    numbers = np.cumsum(rows) - 1  # of all lines that are rows
    malformed = [(int(numbers[number]), row) for number, row in found]
    return _without_header(table.rename_columns(list(names)), numbers[kept], malformed, how)


def _without_header(
    table: pa.Table, numbers: np.ndarray, malformed: list[tuple[int, str]], how: TextOptions
) -> CsvRows:
    if not how.header:
        return CsvRows(table, numbers, malformed)
    return CsvRows(
        table.slice(1), numbers[1:] - 1, [(number - 1, row) for number, row in malformed]
    )


def _empty(names: Sequence[str]) -> pa.Table:
    return pa.table([pa.nulls(0, pa.string())] * len(names), names=list(names))


def _by_fields(text: bytes, names: Sequence[str], how: TextOptions) -> CsvRows:
    whole = text.decode()
    columns: list[list[str | None]] = [[] for _ in names]
    numbers, malformed = [], []
    for number, (begin, end, values) in enumerate(_rows(whole, how)):
        if len(values) != len(names):
            malformed.append((number, whole[begin:end]))
            continue
        numbers.append(number)
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    table = pa.table([pa.array(one, pa.string()) for one in columns], names=list(names))
    return _without_header(table, np.array(numbers, np.int64), malformed, how)


def field_pattern(how: TextOptions) -> str:
    """Return a regular expression for a field: in quotes (with `inside` and what follows, `after`),
    or not (`bare`). Quotes count only at the beginning of a field."""
    sep = re.escape(how.separator)
    bare = rf"(?P<bare>[^{sep}\r\n]*+)"
    if not how.quote:
        return bare
    q, e = re.escape(how.quote), re.escape(how.escape or how.quote)
    if e == q:
        inside = rf"[^{q}]*+(?:{q}{q}[^{q}]*+)*+"
    else:
        inside = rf"[^{q}{e}]*+(?:{e}[\s\S][^{q}{e}]*+)*+"
    return rf"(?:{q}(?P<inside>{inside}){q}(?P<after>[^{sep}\r\n]*+)|(?!{q}){bare})"


def _rows(whole: str, how: TextOptions) -> Iterator[tuple[int, int, list[str | None]]]:
    """Yield for each row where it begins and ends, and its values."""
    field = re.compile(field_pattern(how))
    place = 0
    while place < len(whole):
        begin, values = place, list[str | None]()
        if how.comment and whole.startswith(how.comment, place):
            place = _next_line(whole, place)
            continue
        while True:
            match = field.match(whole, place)
            if match is None:
                raise NotClosed(len(_LINE.findall(whole, 0, place)) + 1)
            values.append(_value(match, how))
            place = match.end()
            if whole[place : place + 1] != how.separator:
                break
            place += 1
        end = place
        place = _next_line(whole, place)
        if whole[begin:end].strip(BLANKS):
            yield begin, end, values


def _next_line(whole: str, place: int) -> int:
    match = _LINE.search(whole, place)
    return match.end() if match else len(whole)


def _value(match: re.Match[str], how: TextOptions) -> str | None:
    groups = match.groupdict()
    inside = groups.get("inside")
    if inside is None:
        return groups["bare"] or None
    if groups["after"].strip():  # as it stands: some programs write inches so
        return match[0]
    if how.escape in ("", how.quote):
        return inside.replace(how.quote * 2, how.quote)
    return re.sub(re.escape(how.escape) + f"([{re.escape(how.escape + how.quote)}])", r"\1", inside)
