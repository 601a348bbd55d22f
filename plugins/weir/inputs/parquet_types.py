"""Spark's types for the columns of a Parquet schema, by the rules by which Spark reads a file that
has no metadata of Spark's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from weir.errors import InvalidInput
from weir.inputs.parquet_footer import Value, WrongFooter, number_in
from weir.model.schema import (
    DEEPEST,
    VOID,
    Field,
    Kind,
    list_of,
    map_of,
    new_field,
    parts_of,
    with_parts,
)

UUID = "uuid"  # the type of 16 bytes that are kept as text
_REQUIRED, _REPEATED = 0, 2
_PHYSICAL = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED")
_PLAIN = dict(zip(_PHYSICAL, ("boolean", "integer", "long", "timestamp", "float", "double",
                              "binary", "binary"), strict=True))  # fmt: skip
_INTEGERS = {8: "byte", 16: "short", 32: "integer", 64: "long"}
_UNSIGNED = {8: "short", 16: "integer", 32: "long", 64: "decimal(20,0)"}
# Logical types by the numbers of parquet.thrift, with the converted types of older writers.
_OLDER: dict[int, dict[int, Value]] = {
    0: {1: {}}, 1: {2: {}}, 2: {2: {}}, 3: {3: {}}, 4: {4: {}}, 6: {6: {}}, 7: {7: {}}, 8: {7: {}},
    9: {8: {1: True, 2: {1: {}}}}, 10: {8: {1: True, 2: {2: {}}}}, 19: {12: {}}, 20: {13: {}},
    **{11 + i: {10: {1: 8 << i, 2: False}} for i in range(4)},
    **{15 + i: {10: {1: 8 << i, 2: True}} for i in range(4)},
}  # fmt: skip
_INTERVAL = 21  # a converted type without a logical one
_STRING, _MAP, _LIST, _ENUM, _DECIMAL, _DATE, _TIME, _TIMESTAMP = 1, 2, 3, 4, 5, 6, 7, 8
_INTEGER, _UNKNOWN, _JSON, _BSON, _UUID = 10, 11, 12, 13, 14
_NAMES = {2: "MAP", 3: "LIST", 15: "FLOAT16", 16: "VARIANT", 17: "GEOMETRY", 18: "GEOGRAPHY"}
_INSTEAD = {
    "TIME": "has times without a date, which Spark can't read; write it as a string or a timestamp",
    "INTERVAL": "has intervals, which Spark can't read; write it as a number or a string",
    "FLOAT16": "has the Parquet type FLOAT16, which Spark can't read; write it as a float",
}


def in_nanoseconds(kind: str) -> str:
    """Return how the type of a time is called if it is in nanoseconds."""
    return f"{kind} in nanoseconds"


# The types of times in nanoseconds, with those in which they are kept.
NANOSECONDS = {in_nanoseconds(kind): kind for kind in ("timestamp", "timestamp_ntz")}


def each_type(kind: Kind, change: Callable[[str], Kind]) -> Kind:
    """Return a type with `change` applied to each simple type in it."""
    if isinstance(kind, str):
        return change(kind)
    return with_parts(kind, [each_type(one, change) for one in parts_of(kind)])


class _Unsupported(Exception):
    """A column has a type that Spark lacks; the text is the predicate of a sentence about it."""


@dataclass
class _Node:
    about: dict[int, Value]
    children: list["_Node"] = field(default_factory=list)

    @property
    def name(self) -> str:
        return str(self.about.get(4, ""))

    @property
    def repetition(self) -> int:
        return number_in(self.about, 3)

    @property
    def logical(self) -> tuple[int, dict[int, Value]]:
        """Return the number of the logical type, 0 if there is none, and its parameters."""
        found = self.about.get(10)
        if not found:
            converted = self.about.get(6)
            found = _OLDER.get(converted) if isinstance(converted, int) else None
            if converted == _DECIMAL:
                found = {_DECIMAL: {1: self.about.get(7, 0), 2: self.about.get(8, 0)}}
        if not isinstance(found, dict):
            return 0, {}
        number, given = next(iter(found.items()), (0, {}))
        return number, given if isinstance(given, dict) else {}


def columns_of_elements(path: str, elements: Sequence[dict[int, Value]]) -> list[Field]:
    """Return the columns of a file from the elements of its schema. The types are Spark's, and
    `VOID`, `UUID` and those of `NANOSECONDS`, also within others.

    Raises WrongFooter for elements that are no tree; InvalidInput naming the column and the file
    for a type that Spark lacks.
    """
    root = _tree(elements)
    found = []
    for child in root.children:
        try:
            kind = _column(child)
        except _Unsupported as error:
            raise InvalidInput(
                "column_type_unsupported",
                f"column {child.name!r} of the input file {path!r} {error}.",
            ) from None
        found.append(new_field(child.name, kind))
    return found


def _tree(elements: Sequence[dict[int, Value]]) -> _Node:
    rest = iter(elements)

    def grow(depth: int) -> _Node:
        if depth > 2 * DEEPEST + 2:  # a list takes two levels
            raise InvalidInput(
                "column_type_unsupported",
                f"a column of a file is nested more than {DEEPEST} levels deep, which Parquet "
                "readers refuse; append its inner part as text.",
            )
        about = next(rest, None)
        if about is None:
            raise WrongFooter("its schema is cut off")
        _check(about)
        node = _Node(about)
        node.children = [grow(depth + 1) for _ in range(number_in(about, 5))]
        return node

    root = grow(0)
    if next(rest, None) is not None:
        raise WrongFooter("its schema has elements that belong to no column")
    return root


def _check(about: dict[int, Value]) -> None:
    """Raise WrongFooter for an element that Parquet does not have."""
    kind, repetition, children = (number_in(about, number) for number in (1, 3, 5))
    if 4 not in about:
        raise WrongFooter("its schema has an element without a name")
    if not (0 <= kind < len(_PHYSICAL) and 0 <= repetition <= _REPEATED and children >= 0):
        raise WrongFooter(f"its schema has an element {about[4]!r} of an unknown type")


def _column(node: _Node) -> Kind:
    if node.repetition == _REPEATED:  # a list of old writers, without a group around it
        return list_of(_type(node), False)
    return _type(node)


def _type(node: _Node) -> Kind:
    if 1 in node.about and not node.children:
        return _primitive(node)
    if not node.children:
        raise _Unsupported("is a struct without fields; leave it out")
    number, _ = node.logical
    if number == _LIST:
        return _list(node)
    if number == _MAP:
        return _map(node)
    if number:
        raise _lacks(_NAMES.get(number, f"of number {number}"))
    fields = [new_field(one.name, _column(one)) for one in node.children]
    return {"type": "struct", "fields": fields}


def _list(node: _Node) -> Kind:
    [repeated, *more] = node.children
    if more or repeated.repetition != _REPEATED:
        raise _Unsupported("is a list that does not follow the rules of Parquet; write it again")
    # The rules for files of old writers, whose repeated group may itself be the element.
    if (
        not repeated.children
        or len(repeated.children) > 1
        or repeated.name in ("array", f"{node.name}_tuple")
    ):
        return list_of(_type(repeated), False)
    element = repeated.children[0]
    return list_of(_column(element), element.repetition != _REQUIRED)


def _map(node: _Node) -> Kind:
    [entry, *more] = node.children
    if more or entry.repetition != _REPEATED or len(entry.children) != 2:
        raise _Unsupported("is a map that does not follow the rules of Parquet; write it again")
    key, value = entry.children
    if key.repetition != _REQUIRED:
        raise _Unsupported(
            "is a map whose keys may be null, which pyarrow can't read; write it again"
        )
    return map_of(_column(key), _column(value), value.repetition != _REQUIRED)


def _primitive(node: _Node) -> str:
    physical = _PHYSICAL[number_in(node.about, 1)]
    number, given = node.logical
    if node.about.get(6) == _INTERVAL:
        raise _lacks("INTERVAL")
    if number == _TIME:
        raise _lacks("TIME")
    if number == _UNKNOWN:
        return VOID
    if number == 0 or number == _BSON:
        return _PLAIN[physical]
    if number == _DECIMAL and physical in ("INT32", "INT64", "BYTE_ARRAY", "FIXED"):
        return _decimal(physical, given)
    if number in (_STRING, _ENUM, _JSON) and physical == "BYTE_ARRAY":
        return "string"
    if number == _DATE and physical == "INT32":
        return "date"
    if number == _TIMESTAMP and physical == "INT64":
        return _timestamp(given)
    if number == _INTEGER and physical in ("INT32", "INT64"):
        bits = number_in(given, 1)
        if bits in _INTEGERS and (bits == 64) == (physical == "INT64"):
            return (_INTEGERS if given.get(2) else _UNSIGNED)[bits]
    if number == _UUID and physical == "FIXED" and node.about.get(2) == 16:
        return UUID
    raise _lacks(_NAMES.get(number, f"number {number} on {physical}"))


def _timestamp(given: dict[int, Value]) -> str:
    kind, unit = "timestamp" if given.get(1) else "timestamp_ntz", given.get(2)
    return in_nanoseconds(kind) if isinstance(unit, dict) and 3 in unit else kind


def _decimal(physical: str, given: dict[int, Value]) -> str:
    scale, precision = number_in(given, 1), number_in(given, 2)
    most = {"INT32": 9, "INT64": 18}.get(physical, 38)
    if not 0 <= scale <= precision:
        raise _Unsupported(f"is a decimal({precision},{scale}), which does not exist")
    if precision > 38:
        raise _Unsupported(
            f"is a decimal({precision},{scale}), but Spark's have at most 38 digits; cast it to "
            "fewer digits or a string"
        )
    if not 0 < precision <= most:
        raise _Unsupported(f"is a decimal({precision},{scale}) in {physical}, which can't hold it")
    return f"decimal({precision},{scale})"


def _lacks(name: str) -> _Unsupported:
    instead = _INSTEAD.get(name)
    return _Unsupported(
        instead or f"has the Parquet type {name}, which Spark can't read; write it as another type"
    )
