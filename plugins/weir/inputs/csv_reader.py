"""Read csv files exactly: each value as the text that the file has, each row with its number.

pyarrow parses files in which quotes stand only where RFC 4180 has them, which is checked first. All
others, and those with comments or an escape, are taken apart here, field by field, by the rules
that `field_pattern` has.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from weir.inputs.csv_quotes import BLANKS, NotRegular, regular
from weir.kernel.text_options import TextOptions

LONGEST_ROW = 256 << 20  # bytes
_LINE = re.compile(r"\r\n?|\n")


class NotClosed(Exception):
    """Quotes of a file are never closed. `line`: the one in which they open."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


@dataclass(frozen=True)
class CsvRows:
    """Rows of a csv file as texts, null where nothing stands. `count`: how many rows there are;
    `numbers`: which of them are in the table; `malformed`: the number and the text of each of the
    others, which has more or fewer values than there are columns."""

    table: pa.Table
    numbers: np.ndarray
    malformed: list[tuple[int, str]]
    count: int

    def without_first(self) -> "CsvRows":
        """Return the rows after the first, which is in the table."""
        malformed = [(number - 1, row) for number, row in self.malformed]
        return CsvRows(self.table.slice(1), self.numbers[1:] - 1, malformed, self.count - 1)


def read_csv(text: bytes, names: Sequence[str], how: TextOptions) -> CsvRows:
    """Return the rows of a text in UTF-8, of which a header line is one. Raises NotRegular if only
    its fields, one after another, say what it means."""
    plain = regular(text, len(names), how)
    found = _by_pyarrow(plain, names, how)
    if found.malformed and plain != text:
        raise NotRegular  # each is kept as the file has it
    return _with_nulls(found, how)


def read_fields(
    texts: Iterable[bytes], names: Sequence[str], how: TextOptions
) -> Iterator[CsvRows]:
    """Yield the rows of texts in UTF-8, which follow one another and end where lines do. They are
    taken apart field by field. Raises NotClosed."""
    rest, lines = "", 0
    for text in texts:
        rest += text.decode()
        found, done, _ = _by_fields(rest, names, how)
        if done:
            yield _with_nulls(found, how)
            lines, rest = lines + len(_LINE.findall(rest, 0, done)), rest[done:]
        elif len(rest) > LONGEST_ROW:
            break
    if rest:
        _, _, place = _by_fields(rest, names, how)
        raise NotClosed(lines + len(_LINE.findall(rest, 0, place)) + 1)


def first_row(text: str, how: TextOptions) -> tuple[list[str], int]:
    """Return the values of the first row of a text, none if it has no row, and where it ends.
    Raises NotClosed."""
    for begin, end, _, values in _rows(text, how):
        if values is None:
            raise NotClosed(len(_LINE.findall(text, 0, end)) + 1)
        if text[begin:end].strip(BLANKS):
            return [value or "" for value in values], end
    return [], len(text)


def _with_nulls(found: CsvRows, how: TextOptions) -> CsvRows:
    if not how.null_value:
        return found
    columns = [
        pc.if_else(pc.equal(one, how.null_value), pa.scalar(None, pa.string()), one)
        for one in found.table.columns
    ]
    return replace(found, table=pa.table(columns, names=found.table.column_names))


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
        return CsvRows(_empty(names), np.arange(0), [], 0)
    if not text.endswith((b"\n", b"\r")):
        text += b"\n"  # without it, pyarrow takes an empty value that is last for a quoted one
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
    table = table.rename_columns(list(names))
    return CsvRows(table, numbers[kept], malformed, total - len(blank))


def _empty(names: Sequence[str]) -> pa.Table:
    return pa.table([pa.nulls(0, pa.string())] * len(names), names=list(names))


def _by_fields(whole: str, names: Sequence[str], how: TextOptions) -> tuple[CsvRows, int, int]:
    """Return the rows of a text, the place where the last of them ends, and the place of a field
    whose quotes do not close."""
    columns: list[list[str | None]] = [[] for _ in names]
    numbers, malformed = list[int](), list[tuple[int, str]]()
    number = done = place = 0
    for begin, end, after, values in _rows(whole, how):
        place = end
        if values is None:
            break
        done = after
        if not whole[begin:end].strip(BLANKS):
            continue
        if len(values) != len(names):
            malformed.append((number, whole[begin:end]))
        else:
            numbers.append(number)
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        number += 1
    table = pa.table([pa.array(one, pa.string()) for one in columns], names=list(names))
    return CsvRows(table, np.array(numbers, np.int64), malformed, number), done, place


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


def _rows(whole: str, how: TextOptions) -> Iterator[tuple[int, int, int, list[str | None] | None]]:
    """Yield for each row where it begins and ends, and the next one begins, and its values; None
    for one with a field whose quotes do not close, and where that is."""
    field = re.compile(field_pattern(how))
    place = 0
    while place < len(whole):
        begin, values = place, list[str | None]()
        if how.comment and whole.startswith(how.comment, place):
            place = _next_line(whole, place)
            yield begin, begin, place, []
            continue
        while True:
            match = field.match(whole, place)
            if match is None:
                yield begin, place, place, None
                return
            values.append(_value(match, how))
            place = match.end()
            if whole[place : place + 1] != how.separator:
                break
            place += 1
        end = place
        place = _next_line(whole, place)
        yield begin, end, place, values


def _next_line(whole: str, place: int) -> int:
    match = _LINE.search(whole, place)
    return match.end() if match else len(whole)


def _value(match: re.Match[str], how: TextOptions) -> str | None:
    groups = match.groupdict()
    inside = groups.get("inside")
    if inside is None:
        return groups["bare"] or None
    if groups["after"].strip(" \t"):  # as it stands: some programs write inches so
        return match[0]
    if how.escape in ("", how.quote):
        return inside.replace(how.quote * 2, how.quote)
    return re.sub(re.escape(how.escape) + f"([{re.escape(how.escape + how.quote)}])", r"\1", inside)
