"""Find content of csv and json files that Spark would change or drop silently.

Spark reads a byte that is not UTF-8 as U+FFFD, and a quoted newline of a csv file as the end of a
row. It rounds numbers of json files that a double cannot represent, and drops fields of objects
that the stream's column does not have.
"""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.errors import InvalidInput
from weir.model.names import shortened, unstorable
from weir.model.schema import Field, show
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


def look(lines: DataFrame, separator: str | None) -> dict[str, Finding]:
    """Return what is wrong with lines (columns `file` and `value`), by file. Most files have no
    entry.

    `separator`: that of csv files, in which a line may end inside quotes.
    """
    value = F.col("value")
    not_utf8 = ~F.is_valid_utf8(value)
    nul = F.contains(value, F.lit("\0"))
    quoted = F.lit(False)
    if separator is not None:
        quoted = F.contains(value, F.lit('"')) & ~value.rlike(_whole_line(separator))
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


def _whole_line(separator: str) -> str:
    """Return a regular expression that matches lines that begin and end outside quotes.

    It follows Spark's parser: quotes count only at the beginning of a field, a quote inside quotes
    is doubled, and text after the closing quote belongs to the field.
    """
    sep = re.escape(separator)
    field = rf'(?:"[^"]*+(?:""[^"]*+)*+"[^{sep}]*+|[^"{sep}][^{sep}]*+|)'
    return rf"\A{field}(?:{sep}{field})*+\z"


def unclosed_quote(root: str, path: str, separator: str) -> int:
    """Return the line of a csv file with a quote that is never closed; 0 if there is none."""
    sep = re.escape(separator.encode())
    field = rb'(?:"[^"]*+(?:""[^"]*+)*+"[^%s]*+|[^"%s][^%s]*+|)' % (sep, sep, sep)
    whole = re.compile(rb"%s(?:%s%s)*+" % (field, sep, field))
    ends = re.compile(rb'[^"]*+(?:""[^"]*+)*+"[^%s]*+(?:%s%s)*+' % (sep, sep, field))
    began = 0
    system, base = filesystem(root)
    with system.open_input_stream(f"{base}/{path}", compression="detect") as source:
        for number, line in enumerate(io.BufferedReader(source, 1 << 20), 1):
            if began == 0:
                if b'"' in line and whole.fullmatch(line.rstrip(b"\r\n")) is None:
                    began = number
            elif b'"' in line and ends.fullmatch(line.rstrip(b"\r\n")) is not None:
                began = 0
    return began


def header(source: IO[bytes], path: str, separator: str) -> list[str]:
    """Return the columns that the first record of a csv file names. The record may have newlines in
    quotes. Raises InvalidInput if it is too long, cannot be read, or is not UTF-8."""
    start = source.read(LONGEST_HEADER)
    text = start.removeprefix(b"\xef\xbb\xbf").decode(errors="surrogateescape")
    records = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
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
    for name in found:
        if unstorable(name):
            raise InvalidInput(
                "encoding_wrong",
                f"the header line of {path!r} is not UTF-8 text (it has {shortened(name, 60)}); "
                "convert the file, for example with iconv -f UTF-16 -t UTF-8.",
            )
    return found


def _ends(text: str) -> bool:
    return "\n" in text or "\r" in text


def check_text_of(path: str, found: Finding) -> None:
    """Raise InvalidInput for a file with bytes that are not UTF-8, or with NUL characters."""
    if found.not_utf8:
        raise InvalidInput(
            "encoding_wrong",
            f"{found.not_utf8:,} lines of {path!r} are not UTF-8 (the first one is "
            f"{shortened(found.example)}); convert the file, for example with iconv -f latin1 -t "
            "UTF-8.",
        )
    if found.nul:
        raise InvalidInput(
            "nul_characters",
            f"{found.nul:,} lines of {path!r} have NUL characters (\\x00; the first one is "
            f"{shortened(found.example)}); remove them, or convert the file from UTF-16 to UTF-8.",
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


def is_rounded(value: Column, kind: Any) -> Column | None:
    """Return whether a value of a type from `numbers_as_text` has a whole number that no double
    represents exactly."""
    if kind == "string":
        digits = value.rlike("^-?[0-9]{16,}$")
        exact = value.try_cast("decimal(38,0)")
        as_double = value.try_cast("double").try_cast("decimal(38,0)")
        return digits & ~F.coalesce(exact == as_double, F.lit(False))
    if kind["type"] == "struct":
        parts = [(field["name"], field["type"]) for field in kind["fields"]]
        return either([is_rounded(value.getField(name), part) for name, part in parts])
    if kind["type"] == "array":
        return _any_of(value, lambda element: is_rounded(element, kind["elementType"]))
    return _any_of(F.map_values(value), lambda one: is_rounded(one, kind["valueType"]))


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


def columns_with(fields: Sequence[Field], kinds: Sequence[Any | None]) -> list[Field]:
    """Return the columns that have a type in `kinds`, with that type."""
    pairs = zip(fields, kinds, strict=True)
    return [{**field, "type": kind} for field, kind in pairs if kind is not None]


def shows(fields: Sequence[Field]) -> str:
    """Return columns and types as a person reads them."""
    return ", ".join(f"{field['name']} {show(field['type'])}" for field in fields)
