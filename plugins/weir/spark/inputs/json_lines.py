"""Find content of json files that Spark would change or drop silently.

Spark reads a byte that is not UTF-8 as U+FFFD. It rounds numbers that a double cannot represent,
and drops fields of objects that the stream's column does not have.
"""

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weir.inputs.csv_header import Finding

LONGEST_LINE = 16 << 20  # bytes


def look(lines: DataFrame) -> dict[str, Finding]:
    """Return what is wrong with lines (columns `file` and `value`), by file. Most files have no
    entry."""
    value = F.col("value")
    not_utf8, nul = ~F.is_valid_utf8(value), F.contains(value, F.lit("\0"))
    found = (
        lines.select("file", value, not_utf8.alias("a"), nul.alias("b"))
        .where("a or b")
        .groupBy("file")
        .agg(
            F.count_if("a"), F.count_if("b"), F.min(F.make_valid_utf8(F.left("value", F.lit(80)))),
        )
        .collect()
    )  # fmt: skip
    return {file: Finding(a, b, example or "") for file, a, b, example in found}


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
