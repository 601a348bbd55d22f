"""Json objects parsed twice: fast, in the types of the columns, and exactly, with every value as
the text that the file has.

Spark rounds numbers in text columns, takes a time of day for a time of today, and cuts digits off
decimals and times. The second parse shows what was written; `text_values` says what is kept.
"""

from collections.abc import Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weir.kernel.text_options import TextOptions
from weir.model.schema import Field, show, without_metadata
from weir.spark.base.malformed import fault
from weir.spark.inputs.json_lines import LONGEST_LINE, either, unfit
from weir.spark.inputs.text_values import INTEGERS, keeps_digits, value

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE = r"-?(?:[0-9][0-9.eE+-]*+|NaN|Infinity|INF)|true|false"
_BETWEEN = r"[}\]]\s*[{\[]"  # where a value ends and another begins, if it is not in a string
LONG_NUMBER = r"[0-9][0-9.]{15,}|[0-9][eE][+-]?[0-9]{2,}"
_FLOAT = r'^-?[0-9]+\.[0-9]+(?:E-?[0-9]+)?$|^"|^[{\[].*[0-9][.eE][0-9+-]'
_CORRUPT = "_corrupt"
_PIECE = "_weir_piece"
_FAULT = "struct<column:string,text:string,type:string>"
_SPECIAL = r"^(?:NaN|[+-]?(?:INF|Infinity))$"


def pieces(frame: DataFrame, guard: str) -> DataFrame:
    """Return the values of the lines that stand one after another, a row for each (`_weir_piece`),
    without a byte order mark."""
    line = F.expr("TRIM(LEADING '\ufeff' FROM value)")  # Spark warns of ltrim with two arguments
    marked = F.regexp_replace(line, f"({_STRING})|(?<=[}}\\]])\\s*+(?=[{{\\[])", f"$1{guard}")
    marked = F.replace(marked, F.lit(f'"{guard}'), F.lit('"'))
    several = line.rlike(_BETWEEN) & ~unfit(line)
    found = F.when(several, F.split(marked, guard)).otherwise(F.array(line))
    others = [name for name in frame.columns if name != "value"]
    return frame.select(F.explode(found).alias(_PIECE), *others)


def clean(text: Column) -> Column:
    """Return a text that can be stored: valid UTF-8, without NUL, and not too long."""
    valid = F.make_valid_utf8(F.left(text, F.lit(LONGEST_LINE)))
    return F.replace(valid, F.lit("\0"), F.lit("\ufffd"))


class Texts:
    """The objects of a piece of a line, in the types of some columns."""

    def __init__(self, guard: str, fields: Sequence[Field], how: TextOptions) -> None:
        self.guard, self.fields, self.how = guard, list(fields), how

    def struct(self, fields: Sequence[Field]) -> StructType:
        """Return columns as a type of Spark."""
        return StructType.fromJson(
            {"type": "struct", "fields": [
                {**one, "nullable": True, "metadata": {}} for one in without_metadata(list(fields))
            ]}
        )  # fmt: skip

    def listed(self, piece: Column) -> Column:
        """Return the objects as a list."""
        return F.when(F.ltrim(piece).startswith("["), piece).otherwise(
            F.concat(F.lit("["), piece, F.lit("]"))
        )

    def wrapped(self, piece: Column) -> Column:
        """Return an object with the list, and a field after it that shows that nothing was left
        out."""
        return F.concat(F.lit('{"v":'), self.listed(piece), F.lit(f',"{self.guard}":true}}'))

    def parsed(self, text: Column, fields: Sequence[Field]) -> Column:
        """Return a wrapped list (`v`) in the types of the columns."""
        inner = self.struct(fields).jsonValue()
        whole = StructType.fromJson({"type": "struct", "fields": [
            {"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in [
                ("v", {"type": "array", "elementType": inner, "containsNull": True}),
                (self.guard, "boolean"), (_CORRUPT, "string"),
            ]
        ]})  # fmt: skip
        options = {
            "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT, "timeZone": "UTC",
            "allowSingleQuotes": "false",
        }  # fmt: skip
        return F.from_json(text, whole, options)

    def good(self, parsed: Column) -> Column:
        """Return whether a parsed list is whole, and only of objects."""
        events = parsed.getField("v")
        objects = F.when(F.size(events) == 1, F.get(events, F.lit(0)).isNotNull()).otherwise(
            F.forall(events, lambda one: one.isNotNull())
        )
        return parsed.getField(_CORRUPT).isNull() & parsed.getField(self.guard) & objects

    def tokens(self, piece: Column) -> Column:
        """Return JSON with its numbers, true and false as strings that begin with the guard."""
        left, right = f"{self.guard}<", f"{self.guard}>"
        marked = F.regexp_replace(piece, f"({_STRING})|({_VALUE})", f"$1{left}$2{right}")
        marked = F.replace(marked, F.lit(left + right), F.lit(""))
        marked = F.replace(marked, F.lit(left), F.lit(f'"{self.guard}'))
        return F.replace(marked, F.lit(right), F.lit('"'))

    def exactly(self, piece: Column) -> Column:
        """Return the parsed list with all values as texts."""
        texts = [{**one, "type": as_texts(one["type"])} for one in self.fields]
        return self.parsed(self.wrapped(self.tokens(piece)), texts)

    def unique(self, piece: Column) -> Column:
        """Return whether no object, at any depth, has a name twice, and no string has half a
        character (a lone surrogate)."""
        quick = F.try_parse_json(self.wrapped(piece)).isNotNull()
        return quick | F.try_parse_json(self.wrapped(self.tokens(piece))).isNotNull()

    def first_fault(self, exact: Column) -> Column:
        """Return the fault of the first value that its column can't keep, or null."""
        return _first(exact.getField("v"), lambda event: self._fault(event))

    def _fault(self, event: Column) -> Column:
        faults = [
            self._faulty(event.getField(one["name"]), one["type"], one["name"])
            for one in self.fields
        ]
        return F.coalesce(*faults, F.lit(None).cast(_FAULT))

    def values(self, exact: Column) -> Column:
        """Return the list with the values in the types of the columns."""

        def typed(event: Column) -> Column:
            parts = [
                self._typed(event.getField(one["name"]), one["type"]).alias(one["name"])
                for one in self.fields
            ]
            return F.struct(*parts)

        return F.transform(exact.getField("v"), typed)

    def bare(self, text: Column) -> Column:
        """Return a text as it is in the file."""
        inner = F.regexp_replace(text, f'"{self.guard}([^"]*)"', "$1")
        return F.when(
            text.startswith(self.guard), F.substring(text, len(self.guard) + 1, LONGEST_LINE)
        ).otherwise(F.when(F.contains(text, F.lit(self.guard)), inner).otherwise(text))

    def _typed(self, found: Column, kind: Any) -> Column:
        if isinstance(kind, str):
            return self._leaf(found, kind)
        if kind["type"] == "struct":
            parts = [
                self._typed(found.getField(one["name"]), one["type"]).alias(one["name"])
                for one in kind["fields"]
            ]
            return F.when(found.isNotNull(), F.struct(*parts))
        if kind["type"] == "array":
            return F.transform(found, lambda one: self._typed(one, kind["elementType"]))
        return F.transform_values(found, lambda _, one: self._typed(one, kind["valueType"]))

    def _leaf(self, text: Column, kind: str) -> Column:
        token, bare = text.startswith(self.guard), self.bare(text)
        if kind == "string":
            return bare
        exact = value(bare, show(kind), self.how)
        if kind in ("double", "float"):
            return F.when(token | bare.rlike(_SPECIAL), exact)
        if kind in INTEGERS or kind.startswith("decimal") or kind == "boolean":
            return F.when(token, exact)
        return F.when(~token, exact)

    def _faulty(self, found: Column, kind: Any, path: str) -> Column:
        if isinstance(kind, str):
            if kind == "string":
                return F.lit(None).cast(_FAULT)
            wrong = found.isNotNull() & self._leaf(found, kind).isNull()
            return F.when(wrong, fault(path, self.bare(found), kind))
        if kind["type"] == "struct":
            parts = [
                self._faulty(found.getField(one["name"]), one["type"], f"{path}.{one['name']}")
                for one in kind["fields"]
            ]
            return F.coalesce(*parts)
        inner = kind["elementType" if kind["type"] == "array" else "valueType"]
        values = found if kind["type"] == "array" else F.map_values(found)
        return _first(values, lambda one: self._faulty(one, inner, f"{path}[]"))


def _first(values: Column, fault_of: Any) -> Column:
    faults = F.filter(F.transform(values, fault_of), lambda one: one.isNotNull())
    return F.try_element_at(faults, F.lit(1))


def as_texts(kind: Any, only: str = "") -> Any:
    """Return a type with strings in place of its values (`only`: of those of one type)."""
    if isinstance(kind, str):
        return "string" if only in ("", kind) else kind
    if kind["type"] == "struct":
        fields = [{**one, "type": as_texts(one["type"], only)} for one in kind["fields"]]
        return {**kind, "fields": fields}
    name = "elementType" if kind["type"] == "array" else "valueType"
    return {**kind, name: as_texts(kind[name], only)}


def _leaf_kinds(kind: Any) -> set[str]:
    if isinstance(kind, str):
        return {kind}
    if kind["type"] == "struct":
        return {leaf for one in kind["fields"] for leaf in _leaf_kinds(one["type"])}
    return _leaf_kinds(kind["elementType" if kind["type"] == "array" else "valueType"])


def always_exact(fields: Sequence[Field]) -> bool:
    """Return whether there is a type whose values Spark's parser changes silently."""
    kinds = {leaf for one in fields for leaf in _leaf_kinds(one["type"])}
    return bool(kinds - {"string", "boolean", "double", *INTEGERS})


def floats_in_strings(event: Column, fields: Sequence[Field]) -> Column:
    """Return whether a text of an object looks like a number that Spark wrote anew."""
    tests = [_floats(event.getField(one["name"]), one["type"]) for one in fields]
    return _certain(either(tests))


def _floats(found: Column, kind: Any) -> Column | None:
    if isinstance(kind, str):
        return found.rlike(_FLOAT) if kind == "string" else None
    if kind["type"] == "struct":
        return either([_floats(found.getField(f["name"]), f["type"]) for f in kind["fields"]])
    inner = kind["elementType" if kind["type"] == "array" else "valueType"]
    if "string" not in _leaf_kinds(inner):
        return None
    values = found if kind["type"] == "array" else F.map_values(found)
    return F.exists(values, lambda one: _certain(_floats(one, inner)))


def loses_digits(found: Column, kind: Any, guard: str) -> Column:
    """Return whether a value, parsed as texts, has a number that no double keeps."""
    return _certain(_losing(found, kind, guard))


def _losing(found: Column, kind: Any, guard: str) -> Column | None:
    if isinstance(kind, str):
        if kind != "double":
            return None
        text = F.substring(found, len(guard) + 1, LONGEST_LINE)
        kept = keeps_digits(text, text.try_cast("double")) | text.rlike(_SPECIAL)
        return found.startswith(guard) & ~F.coalesce(kept, F.lit(False))
    if kind["type"] == "struct":
        return either(
            [_losing(found.getField(f["name"]), f["type"], guard) for f in kind["fields"]]
        )
    inner = kind["elementType" if kind["type"] == "array" else "valueType"]
    if "double" not in _leaf_kinds(inner):
        return None
    values = found if kind["type"] == "array" else F.map_values(found)
    return F.exists(values, lambda one: _certain(_losing(one, inner, guard)))


def _certain(test: Column | None) -> Column:
    return F.lit(False) if test is None else F.coalesce(test, F.lit(False))
