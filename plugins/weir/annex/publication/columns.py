"""The columns of a stream as those of an Iceberg table, in the JSON of Iceberg's specification.

A column has an id, which follows from its name in files, and which compacted files have in them.
Other files have no ids, so the table has a *name mapping*, which says which id a name stands for.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.model.schema import Field, field_id, new_field, same_type, show, stored_name

_TYPES = {
    "byte": "int", "short": "int", "integer": "int", "long": "long", "float": "float",
    "double": "double", "boolean": "boolean", "string": "string", "binary": "binary",
    "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
}  # fmt: skip
_WIDER = {("int", "long"), ("float", "double")}  # what a reader of Iceberg widens itself
_PARTS = {  # what of Spark's lists and maps is called how in files
    "array": {"elementType": "element"}, "map": {"keyType": "key", "valueType": "value"},
}  # fmt: skip
_Path = tuple[str, ...]
Json = str | int | bool | list["Json"] | dict[str, "Json"]
Mapped = TypedDict("Mapped", {"field-id": int, "names": list[str], "fields": list["Mapped"]})
_MAPPED = list[Mapped]  # one level of a name mapping


class Ids:
    """The ids of columns and of what is in them, by their names in files, and the name mapping that
    says so."""

    def __init__(self) -> None:
        self.mapping: _MAPPED = []
        self.last = 0
        self._paths: dict[int, _Path] = {}

    def of(self, path: _Path, level: _MAPPED) -> tuple[int, _MAPPED]:
        """Return the id of what has this path, and its level of the mapping. Raises InvalidInput if
        something else has the same id."""
        number = field_id(path)
        if self._paths.setdefault(number, path) != path:
            raise InvalidInput(
                "not_publishable",
                f"column {path[0]!r} has the number of column {self._paths[number][0]!r} "
                "by chance; rename it in the program that writes it, or do not publish the stream.",
            )
        self.last = max(self.last, number)
        for known in level:
            if known["field-id"] == number:
                return number, known["fields"]
        level.append({"field-id": number, "names": [path[-1]], "fields": []})
        return number, level[-1]["fields"]

    def learn(self, fields: Sequence[Field]) -> None:
        """Give ids to all that files with these columns have, as a reader may ask for each."""
        self._learn(fields, (), self.mapping)

    def _learn(self, fields: Sequence[Field], above: _Path, level: _MAPPED) -> None:
        for one in fields:
            path = (*above, stored_name(one))
            self._learn_type(one["type"], path, self.of(path, level)[1])

    def _learn_type(self, kind: Any, path: _Path, level: _MAPPED) -> None:
        if kind == "variant":
            parts = [new_field(name, "binary") for name in ("metadata", "value")]
            self._learn(parts, path, level)
        elif not isinstance(kind, str) and kind["type"] == "struct":
            self._learn(kind["fields"], path, level)
        elif not isinstance(kind, str):
            for part, name in _PARTS[kind["type"]].items():
                below = (*path, name)
                self._learn_type(kind[part], below, self.of(below, level)[1])


def columns_of(fields: Sequence[Field]) -> list[Json]:
    """Return the columns of a table, under the names that the stream gives them now. Raises
    InvalidInput for a type that the table can't have."""
    return [_column(field, field["name"], (stored_name(field),)) for field in fields]


def _column(field: Field, name: str, path: _Path) -> dict[str, Json]:
    kind = _type(field["type"], path)
    return {"id": field_id(path), "name": name, "required": False, "type": kind}


def _type(kind: Any, path: _Path) -> Json:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            return kind.replace(",", ", ")
        if kind not in _TYPES:
            raise InvalidInput(
                "not_publishable",
                f"column {path[0]!r} is {show(kind)}, which an Iceberg table of format version 2 "
                "does not have; keep its text in a column instead, or do not publish the stream.",
            )
        return _TYPES[kind]
    if kind["type"] == "struct":
        fields: list[Json] = [
            _column(one, one["name"], (*path, one["name"])) for one in kind["fields"]
        ]
        return {"type": "struct", "fields": fields}
    described: dict[str, Json] = {"type": "list" if kind["type"] == "array" else "map"}
    for part, name in _PARTS[kind["type"]].items():
        below = (*path, name)
        described |= {f"{name}-id": field_id(below), name: _type(kind[part], below)}
        described |= {} if name == "key" else {f"{name}-required": False}
    return described


def unlike(versions: Sequence[tuple[int, list[Field]]]) -> list[tuple[int, str, str]]:
    """Return where files of an older version of the columns would be read wrongly by the newest
    one: that version, the column, and why."""
    if not versions:
        return []
    newest = {stored_name(field): field for field in versions[-1][1]}
    found = []
    for version, fields in versions[:-1]:
        older = {stored_name(field): field for field in fields}
        for stored, field in newest.items():
            if stored not in older:
                if "default" in field:
                    found.append((version, field["name"], "has a default, which older files lack"))
            elif not _widens(older[stored]["type"], field["type"]):
                was, now = show(older[stored]["type"]), show(field["type"])
                found.append((version, field["name"], f"was widened from {was} to {now}"))
    return found


def not_publishable(stream: str, column: str, why: str) -> InvalidInput:
    """Return the error for a column that files of older versions have in another way."""
    return InvalidInput(
        "not_publishable",
        f"stream {stream} can't be published: its column {column!r} {why}, and format version 2 of "
        "Iceberg can't express that; truncate the events from before that change, or "
        f"{do('update_stream', stream=stream, publish='none')}.",
    )


def _widens(old: Any, new: Any) -> bool:
    """Return whether a reader of Iceberg reads values of an old type as those of a new one."""
    if same_type(old, new):
        return True
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if old["type"] == "struct":
            now = {field["name"]: field["type"] for field in new["fields"]}
            return all(_widens(f["type"], now.get(f["name"], f["type"])) for f in old["fields"])
        return all(_widens(old[part], new[part]) for part in _PARTS[old["type"]])
    if old.startswith("decimal(") and new.startswith("decimal("):
        return bool(old.partition(",")[2] == new.partition(",")[2])
    return _TYPES.get(old) == _TYPES.get(new) or (_TYPES.get(old), _TYPES.get(new)) in _WIDER
