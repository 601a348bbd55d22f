"""Values of json in the types of columns: each says exactly what the file says, or there is none
(semantics 12.3)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.inputs.json_guess import columns_of
from weir.inputs.json_reader import Json, Number, written
from weir.kernel.schema import arrow_type
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import INTEGERS, value
from weir.model.schema import VOID, Field, Kind, Struct, show

# Texts that a double may be, beside numbers.
_SPECIAL = re.compile(r"NaN|[+-]?(?:INF|Infinity)")
# The place, the text and the type of a value that does not fit; all None for a field that the
# column lacks.
Fault = tuple[str | None, str | None, str | None]
Faults = dict[int, Fault]  # of rows, of each the first


@dataclass(frozen=True)
class Reading:
    """How values are read. `closed`: the columns whose objects have no other fields; of others they
    are left out."""

    how: TextOptions
    closed: frozenset[str]

    def columns(
        self, rows: Sequence[dict[str, Json]], fields: Sequence[Field]
    ) -> tuple[list[pa.Array], Faults]:
        """Return the values of objects in the types of columns, and the first fault of each
        object."""
        values = columns_of(rows, [one["name"] for one in fields])
        columns, faults = [], Faults()
        for one in fields:
            name = one["name"]
            column, wrong = self._values(values[name], one["type"], name, name in self.closed)
            columns.append(column)
            faults = wrong | faults
        return columns, faults

    def _values(
        self, values: Sequence[Any], kind: Kind, path: str, closed: bool
    ) -> tuple[pa.Array, Faults]:
        if isinstance(kind, str):
            return self._simple(values, kind, path)
        of = list if kind["type"] == "array" else dict
        faults: Faults = {
            row: (path, _text(one), show(kind))
            for row, one in enumerate(values)
            if one is not None and type(one) is not of
        }
        if faults:
            values = [None if row in faults else one for row, one in enumerate(values)]
        if kind["type"] == "struct":
            return self._structs(values, kind, path, closed, faults)
        inner = kind["elementType"] if kind["type"] == "array" else kind["valueType"]
        flat = list(chain.from_iterable(
            one.values() if type(one) is dict else one for one in values if one
        ))  # fmt: skip
        sizes = [len(one) if one else 0 for one in values]
        ends = [0, *accumulate(sizes)]
        items, wrong = self._values(flat, inner, f"{path}[]", closed)
        if wrong:
            at = np.searchsorted(ends, sorted(wrong), side="right") - 1
            for row, place in zip(at.tolist(), sorted(wrong), strict=True):
                faults.setdefault(row, wrong[place])
        starts = pa.array(
            [None if one is None else end for one, end in zip(values, ends[:-1], strict=True)]
            + ends[-1:],
            pa.int32(),
        )
        if kind["type"] == "array":
            return pa.ListArray.from_arrays(starts, items), faults
        keys = pa.array(list(chain.from_iterable(one for one in values if one)), pa.string())
        return pa.MapArray.from_arrays(starts, keys, items), faults

    def _structs(
        self, values: Sequence[Any], kind: Struct, path: str, closed: bool, faults: Faults
    ) -> tuple[pa.Array, Faults]:
        names = [one["name"] for one in kind["fields"]]
        there = columns_of([one or {} for one in values], names)
        parts = []
        for one in kind["fields"]:
            name = one["name"]
            part, wrong = self._values(there[name], one["type"], f"{path}.{name}", closed)
            parts.append(part)
            faults = wrong | faults
        if closed:
            known = set(names)
            for row, one in enumerate(values):
                if one and not known.issuperset(one) and any(
                    found is not None for name, found in one.items() if name not in known
                ):  # fmt: skip
                    faults.setdefault(row, (None, None, None))
        fields = [pa.field(name, part.type) for name, part in zip(names, parts, strict=True)]
        missing = pa.array([one is None for one in values], pa.bool_())
        return pa.StructArray.from_arrays(parts, fields=fields, mask=missing), faults

    def _simple(self, values: Sequence[Json], kind: str, path: str) -> tuple[pa.Array, Faults]:
        if kind == VOID:
            return pa.nulls(len(values)), {}
        types = set(map(type, values)) - {type(None)}
        if kind == "string":
            if types - {str, Number}:
                values = [_text(one) for one in values]
            return pa.array(values, pa.string()), {}
        wanted, special = _wanted(kind)
        fit = values
        if types - {wanted}:
            fit = [one if type(one) is wanted or special(one) else None for one in values]
        if kind == "boolean":
            found = pa.array(fit, pa.bool_())
        else:
            texts = pa.chunked_array([pa.array(fit, pa.string())])
            wide = value(texts, kind, self.how)
            found = wide.cast(arrow_type(kind)).combine_chunks()
        if found.null_count == values.count(None):
            return found, {}
        lost = np.flatnonzero(pc.is_null(found).to_numpy(zero_copy_only=False)).tolist()
        return found, {
            row: (path, _text(values[row]), kind) for row in lost if values[row] is not None
        }


def _wanted(kind: str) -> tuple[type, Callable[[Json], bool]]:
    """Return as what json has values of a type, and a test for others that it takes."""
    if kind == "boolean":
        return bool, lambda one: False
    if kind in ("double", "float"):
        return Number, lambda one: type(one) is str and bool(_SPECIAL.fullmatch(one))
    number = kind in INTEGERS or kind.startswith("decimal")
    return Number if number else str, lambda one: False


def _text(one: Json) -> str | None:
    """Return a value as a column of texts has it."""
    return one if one is None or isinstance(one, str) else written(one)
