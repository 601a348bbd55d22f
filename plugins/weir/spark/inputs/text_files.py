"""Find content of csv and json files that Spark would change or drop silently.

Spark reads a byte that is not UTF-8 as U+FFFD, and a quoted newline of a csv file as the end of a
row. It rounds numbers of json files that a double cannot represent, and drops fields of objects
that the stream's column does not have.
"""

import codecs
import csv
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import IO, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.model.names import shortened, unstorable
from weir.spark.inputs.text_options import ENCODINGS, TextOptions
from weir.warehouse.filesystem import filesystem

LONGEST_LINE = 16 << 20  # bytes
LONGEST_HEADER = 1 << 20  # bytes


@dataclass(frozen=True)
class Finding:
    """How many lines of a file are not UTF-8, how many have NUL, and the first of them. Both are 0
    if all that was found is a line that ends inside quotes."""

    not_utf8: int
    nul: int
    example: str


def look(lines: DataFrame, how: TextOptions | None) -> dict[str, Finding]:
    """Return what is wrong with lines (columns `file` and `value`), by file. Most files have no
    entry.

    `how`: the options of csv files, in which a line may end inside quotes.
    """
    value = F.col("value")
    utf8 = how is None or how.encoding == "utf-8"  # of other encodings, all bytes were looked at
    not_utf8 = ~F.is_valid_utf8(value) if utf8 else F.lit(False)
    nul = F.contains(value, F.lit("\0"))
    quoted = F.lit(False)
    if how is not None and how.quote:
        quoted = F.contains(value, F.lit(how.quote)) & ~value.rlike(rf"\A{_fields(how)}\z")
        if how.comment:
            quoted = quoted & ~value.startswith(how.comment)
    found = (
        lines.select("file", value, not_utf8.alias("a"), nul.alias("b"), quoted.alias("c"))
        .where("a or b or c")
        .groupBy("file")
        .agg(
            F.count_if("a"),
            F.count_if("b"),
            F.min(F.when(F.col("a") | F.col("b"), F.make_valid_utf8(F.left("value", F.lit(80))))),
        )
        .collect()
    )
    return {file: Finding(a, b, example or "") for file, a, b, example in found}


def _field(how: TextOptions) -> str:
    """Return a regular expression that matches a field of a csv file, from its first character on.

    It follows Spark's parser: quotes count only at the beginning of a field, and text after the
    closing quote belongs to the field.
    """
    sep, q = re.escape(how.separator), re.escape(how.quote)
    return rf"(?:{q}{_inside(how)}{q}[^{sep}]*+|[^{q}{sep}][^{sep}]*+|)"


def _inside(how: TextOptions) -> str:
    """Return a regular expression for what stands between quotes, where a quote is doubled or has
    the escape before it."""
    q, e = re.escape(how.quote), re.escape(how.escape or how.quote)
    if e == q:
        return rf"[^{q}]*+(?:{q}{q}[^{q}]*+)*+"
    return rf"[^{q}{e}]*+(?:{e}.[^{q}{e}]*+)*+"


def _fields(how: TextOptions) -> str:
    """Return a regular expression that matches lines that begin and end outside quotes."""
    return rf"{_field(how)}(?:{re.escape(how.separator)}{_field(how)})*+"


def unclosed_quote(root: str, path: str, how: TextOptions) -> int:
    """Return the line of a csv file with a quote that is never closed; 0 if there is none."""
    sep, q = re.escape(how.separator), re.escape(how.quote)
    whole = re.compile(_fields(how))
    ends = re.compile(rf"{_inside(how)}{q}[^{sep}]*+(?:{sep}{_field(how)})*+")
    began = 0
    system, base = filesystem(root)
    with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
        lines = io.TextIOWrapper(io.BufferedReader(source, 1 << 20), "latin-1", newline="\n")
        for number, line in enumerate(lines, 1):
            if how.quote not in line or (how.comment and line.startswith(how.comment)):
                continue
            if began == 0:
                if whole.fullmatch(line.rstrip("\r\n")) is None:
                    began = number
            elif ends.fullmatch(line.rstrip("\r\n")) is not None:
                began = 0
    return began


@dataclass(frozen=True)
class Header:
    """The columns that the first record of a csv file names, or the values that it has, and how
    many rows Spark finds in what comes before it."""

    names: list[str]
    before: int


def header(source: IO[bytes], path: str, how: TextOptions) -> Header:
    """Return the first record of a csv file after the lines to skip. It may have newlines in
    quotes. Raises InvalidInput if it is too long, cannot be read, or is not in its encoding."""
    start = source.read(LONGEST_HEADER)
    decoder = codecs.getincrementaldecoder(how.encoding)(
        "surrogateescape" if how.encoding == "utf-8" else "strict"
    )
    try:
        text = decoder.decode(start, final=False).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise InvalidInput(
            "encoding_wrong",
            f"the first lines of {path!r} are not {ENCODINGS[how.encoding]} text; "
            f"{give(encoding='ENCODING')} with that of the file.",
        ) from None
    lines = io.StringIO(text, newline="").readlines()
    skipped, kept = lines[: how.skip_lines], lines[how.skip_lines :]
    before = sum(_is_row(line, how) for line in skipped)
    while kept and not _is_row(kept[0], how):
        kept.pop(0)
    escape = how.escape if how.escape not in ("", how.quote) else None
    records = csv.reader(
        kept, delimiter=how.separator, quotechar=how.quote or None, escapechar=escape,
        quoting=csv.QUOTE_MINIMAL if how.quote else csv.QUOTE_NONE, strict=True,
    )  # fmt: skip
    try:
        found = next(records, [])
    except csv.Error as error:
        raise InvalidInput(
            "header_invalid", f"the header line of {path!r} can't be read: {error}."
        ) from None
    if len(start) == LONGEST_HEADER and records.line_num > 0 and not _ends(text):
        raise InvalidInput(
            "header_invalid",
            f"the header line of {path!r} is longer than {LONGEST_HEADER:,} bytes; check that it "
            "is a csv file with a header line.",
        )
    for name in found if how.header else ():
        if unstorable(name):
            raise InvalidInput(
                "encoding_wrong",
                f"the header line of {path!r} is not {ENCODINGS[how.encoding]} text (it has "
                f"{shortened(name, 60)}); {give(encoding='ENCODING')} with that of the file, such "
                "as windows-1252 or utf-16.",
            )
    return Header(found, before)


def _is_row(line: str, how: TextOptions) -> bool:
    """Return whether Spark takes a line for a row: it passes over blank lines and comments."""
    return bool(line.strip()) and not (how.comment and line.startswith(how.comment))


def _ends(text: str) -> bool:
    return "\n" in text or "\r" in text


def check_text_of(path: str, found: Finding) -> None:
    """Raise InvalidInput for a file with bytes that are not UTF-8, or with NUL characters."""
    if found.not_utf8:
        raise InvalidInput(
            "encoding_wrong",
            f"{found.not_utf8:,} lines of {path!r} are not UTF-8 (the first one is "
            f"{shortened(found.example)}); for a csv file {give(encoding='ENCODING')} with that of "
            "the file, such as windows-1252, or convert it, for example with iconv -f windows-1252 "
            "-t UTF-8.",
        )
    if found.nul:
        raise InvalidInput(
            "nul_characters",
            f"{found.nul:,} lines of {path!r} have NUL characters (\\x00; the first one is "
            f"{shortened(found.example)}); remove them, or for a csv file "
            f"{give(encoding='ENCODING')} with that of the file, such as utf-16.",
        )


def unfit(value: Column) -> Column:
    """Return whether Spark cannot read a line of a json file unchanged.

    Spark drops a field with an empty name.
    """
    nameless = F.contains(value, F.lit('""')) & value.rlike(r'[{,]\s*""\s*:')
    return (
        ~F.is_valid_utf8(value)
        | F.contains(value, F.lit("\0"))
        | (F.octet_length(value) > F.lit(LONGEST_LINE))
        | nameless
    )


def gained(known: Any, found: Any, path: str) -> list[str]:
    """Return the fields of objects, at any depth, that are in `found` but not in `known`."""
    if not isinstance(known, dict) or not isinstance(found, dict) or known["type"] != found["type"]:
        return []
    if known["type"] == "struct":
        parts = {field["name"]: field["type"] for field in known["fields"]}
        paths = []
        for field in found["fields"]:
            name = field["name"]
            below = f"{path}.{name}"
            paths += gained(parts[name], field["type"], below) if name in parts else [below]
        return paths
    if known["type"] == "array":
        return gained(known["elementType"], found["elementType"], f"{path}[]")
    return []


def has_gained(value: Column, known: Any, found: Any) -> Column | None:
    """Return whether a value of type `found` has such a field, or None if no value can."""
    if not isinstance(known, dict) or not isinstance(found, dict) or known["type"] != found["type"]:
        return None
    if known["type"] == "array":
        inner = known["elementType"], found["elementType"]
        return _any_of(value, lambda element: has_gained(element, *inner))
    if known["type"] != "struct":
        return None
    parts = {field["name"]: field["type"] for field in known["fields"]}
    tests = []
    for field in found["fields"]:
        part = value.getField(field["name"])
        if field["name"] not in parts:
            tests.append(part.isNotNull())
        elif (test := has_gained(part, parts[field["name"]], field["type"])) is not None:
            tests.append(test)
    return either(tests)


def numbers_as_text(kind: Any) -> Any | None:
    """Return a type with text in place of doubles, or None if it has no double."""
    if kind == "double":
        return "string"
    if not isinstance(kind, dict):
        return None
    if kind["type"] == "struct":
        fields = [(field, numbers_as_text(field["type"])) for field in kind["fields"]]
        kept = [{**field, "type": text} for field, text in fields if text is not None]
        return {**kind, "fields": kept} if kept else None
    name = "elementType" if kind["type"] == "array" else "valueType"
    text = numbers_as_text(kind[name])
    return None if text is None else {**kind, name: text}


def either(tests: Iterable[Column | None]) -> Column | None:
    """Return whether any of the tests is true. Null counts as false."""
    whole: Column | None = None
    for test in tests:
        if test is not None:
            one = F.coalesce(test, F.lit(False))
            whole = one if whole is None else whole | one
    return whole


def _any_of(values: Column, test: Any) -> Column | None:
    if test(F.lit(None)) is None:
        return None
    return F.exists(values, test)
