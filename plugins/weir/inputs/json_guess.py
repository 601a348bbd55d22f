"""Guess the types of what json holds: what values at each place show. Looks at parts of files add
up, and all together decide."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weir.inputs.json_reader import Json, Number
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import matches, value
from weir.model.schema import DEEPEST, VOID, Kind, list_of, new_field

# What values are: an empty text shows no type beside others. A number that is WHOLE fits a long, a
# LONGER one does not; LOST are those that a double does not keep.
TEXT, EMPTY, TRUTH, OBJECT, LIST = "text", "empty text", "truth", "object", "list"
WHOLE, LONGER, POINT, LOST = "whole", "longer", "point", "lost"
_NUMBERS = {WHOLE, LONGER, POINT, LOST}
_PLAIN = TextOptions()
_LONG_DIGITS, _MOST_DIGITS = 20, 38
_SURE = 1 << 53  # all whole numbers up to it are doubles


@dataclass(frozen=True)
class Shape:
    """What values at one place show. `digits`: of the longest number that is LONGER; `fields`: of
    objects; `element`: of lists."""

    kinds: frozenset[str] = frozenset()
    digits: int = 0
    fields: Mapping[str, "Shape"] = field(default_factory=dict)
    element: "Shape | None" = None

    def __add__(self, other: "Shape") -> "Shape":
        names = dict.fromkeys([*self.fields, *other.fields])
        nothing = Shape()
        fields = {n: self.fields.get(n, nothing) + other.fields.get(n, nothing) for n in names}
        element = self.element or other.element
        if self.element and other.element:
            element = self.element + other.element
        digits = max(self.digits, other.digits)
        return Shape(self.kinds | other.kinds, digits, fields, element)


def shape_of(values: Sequence[Json], depth: int = 0) -> Shape:
    """Return what values show."""
    if depth > DEEPEST + 1:  # which no column may be
        return Shape(frozenset({TEXT}))
    types = set(map(type, values))
    of: dict[type, Sequence[Any]]
    of = {kind: values if len(types) == 1 else [one for one in values if type(one) is kind]
          for kind in types}  # fmt: skip
    kinds, digits, fields, element = set[str](), 0, {}, None
    if texts := of.get(str):
        kinds |= {TEXT} if any(texts) else set()
        kinds |= set() if all(texts) else {EMPTY}
    if bool in of:
        kinds.add(TRUTH)
    if numbers := of.get(Number):
        more, digits = _numbers(numbers)
        kinds |= more
    if objects := of.get(dict):
        kinds.add(OBJECT)
        names = list(dict.fromkeys(chain.from_iterable(objects)))
        fields = {
            n: shape_of(column, depth + 1) for n, column in columns_of(objects, names).items()
        }
    if lists := of.get(list):
        kinds.add(LIST)
        element = shape_of(list(chain.from_iterable(lists)), depth + 1)
    return Shape(frozenset(kinds), digits, fields, element)


def columns_of(rows: Sequence[dict[str, Json]], names: Sequence[str]) -> dict[str, Sequence[Json]]:
    """Return the values of objects by their names, null where an object lacks one."""
    if len(names) > 1 and min(map(len, rows), default=0) >= len(names):
        try:  # mostly, and in a third of the time
            return dict(zip(names, zip(*map(itemgetter(*names), rows), strict=True), strict=True))
        except KeyError:
            pass
    return {name: [row.get(name) for row in rows] for name in names}


def _numbers(texts: Iterable[str]) -> tuple[set[str], int]:
    """Return the kinds of numbers, and the digits of the longest that is LONGER."""
    given = pa.chunked_array([pa.array(texts, pa.string())])
    found = value(given, "long", _PLAIN)
    fits = pc.is_valid(found)
    ends = pc.min_max(found).as_py()
    kinds = {WHOLE} if ends["min"] is not None else set()
    if pc.all(fits).as_py():
        if -_SURE <= ends["min"] <= ends["max"] <= _SURE:
            return kinds, 0
        rest = given.slice(0, 0)
    else:
        rest = given.filter(pc.invert(fits))
    double = value(given, "double", _PLAIN)
    if double.null_count:
        kinds.add(LOST)
    whole = matches(rest, "^-?[1-9][0-9]*$")
    longer = rest.filter(whole)
    if len(longer) < len(rest):
        kinds.add(POINT)
    if not len(longer):
        return kinds, 0
    return kinds | {LONGER}, pc.max(pc.binary_length(pc.utf8_ltrim(longer, "-"))).as_py()


def kind_of(shape: Shape, double: str = "double") -> Kind | None:
    """Return the type that keeps the values of a place; None if they are objects without a field.
    `double`: the type that doubles get."""
    kinds = shape.kinds - {EMPTY}
    if kinds == {OBJECT}:
        found = {name: kind_of(shape.fields[name], double) for name in sorted(shape.fields)}
        fields = [new_field(name, kind) for name, kind in found.items() if kind is not None]
        return {"type": "struct", "fields": fields} if fields else None
    if kinds == {LIST}:
        element = kind_of(shape.element or Shape(), double)
        return None if element is None else list_of(element)
    if kinds == {TRUTH}:
        return "boolean"
    if not kinds or not kinds <= _NUMBERS:
        return "string"
    if POINT in kinds or shape.digits > _MOST_DIGITS:
        return double
    if LONGER in kinds:
        return f"decimal({max(shape.digits, _LONG_DIGITS if WHOLE in kinds else 0)},0)"
    return "long"


def column_kind(shape: Shape) -> tuple[Kind | None, str]:
    """Return the type of a column and why it has no narrower one; `VOID` if all its values are
    null, None if they are objects without a field. If a double does not keep a number, all doubles
    of the column become texts."""
    if not shape.kinds:
        return VOID, ""
    if _loses(shape):
        return kind_of(shape, "string"), "numbers have more digits than a double keeps"
    return kind_of(shape), ""


def _loses(shape: Shape) -> bool:
    """Return whether a value that would be a double has more digits."""
    kinds = shape.kinds - {EMPTY}
    if kinds == {OBJECT}:
        return any(map(_loses, shape.fields.values()))
    if kinds == {LIST}:
        return _loses(shape.element or Shape())
    return LOST in kinds and kind_of(shape) == "double"
