"""The columns of a stream as those of an Iceberg table, in the JSON of Iceberg's specification.

A column has an id, which its name in files keeps for ever. Weir's files have no ids, so the table
has a *name mapping*, which says which id a name in files stands for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.model.schema import Field, same_type, show, stored_name

_TYPES = {
    "byte": "int", "short": "int", "integer": "int", "long": "long", "float": "float",
    "double": "double", "boolean": "boolean", "string": "string", "binary": "binary",
    "date": "date", "timestamp": "timestamptz", "timestamp_ntz": "timestamp",
}  # fmt: skip
_WIDER = {("int", "long"), ("float", "double")}  # what a reader of Iceberg widens itself
_PARTS = {  # what of Spark's lists and maps is called how in files
    "array": {"elementType": "element"}, "map": {"keyType": "key", "valueType": "value"},
}  # fmt: skip
_MAPPED = list[dict[str, Any]]  # one level of a name mapping


class Ids:
    """The ids of columns, by their names in files. A new name gets the next id."""

    def __init__(self, mapping: _MAPPED, last: int) -> None:
        self.mapping, self.last = mapping, last

    def of(self, level: _MAPPED, name: str) -> tuple[int, _MAPPED]:
        """Return the id of a name in a level of the mapping, and the level below it."""
        for known in level:
            if known["names"] == [name]:
                return known["field-id"], known.setdefault("fields", [])
        self.last += 1
        level.append({"field-id": self.last, "names": [name], "fields": []})
        return self.last, level[-1]["fields"]

    def learn(self, fields: Sequence[Field], level: _MAPPED | None = None) -> None:
        """Give ids to all that files with these columns have, as a reader may ask for each."""
        for one in fields:
            below = self.of(self.mapping if level is None else level, stored_name(one))[1]
            self._learn_type(one["type"], below)

    def _learn_type(self, kind: Any, level: _MAPPED) -> None:
        if kind == "variant":
            self.learn([{"name": name, "type": "binary"} for name in ("metadata", "value")], level)
        elif not isinstance(kind, str) and kind["type"] == "struct":
            self.learn(kind["fields"], level)
        elif not isinstance(kind, str):
            for part, name in _PARTS[kind["type"]].items():
                self._learn_type(kind[part], self.of(level, name)[1])


def columns_of(fields: Sequence[Field], ids: Ids) -> list[dict[str, Any]]:
    """Return the columns of a table, under the names that the stream gives them now. Raises
    InvalidInput for a type that the table can't have."""
    return [_column(field, field["name"], stored_name(field), ids.mapping, ids) for field in fields]


def _column(
    field: Field, name: str, stored: str, level: _MAPPED, ids: Ids, within: str = ""
) -> dict[str, Any]:
    number, below = ids.of(level, stored)
    return {
        "id": number, "name": name, "required": False,
        "type": _type(field["type"], below, ids, within or name),
    }  # fmt: skip


def _type(kind: Any, level: _MAPPED, ids: Ids, column: str) -> Any:
    if isinstance(kind, str):
        if kind.startswith("decimal("):
            return kind.replace(",", ", ")
        if kind not in _TYPES:
            raise InvalidInput(
                "column_not_publishable",
                f"column {column!r} is {show(kind)}, which an Iceberg table of format version 2 "
                "does not have; keep its text in a column instead, or do not publish the stream.",
            )
        return _TYPES[kind]
    if kind["type"] == "struct":
        return {
            "type": "struct",
            "fields": [
                _column(f, f["name"], f["name"], level, ids, column) for f in kind["fields"]
            ],
        }
    if kind["type"] == "array":
        number, below = ids.of(level, "element")
        element = _type(kind["elementType"], below, ids, column)
        return {
            "type": "list", "element-id": number, "element-required": False, "element": element
        }  # fmt: skip
    (key, of_key), (value, of_value) = ids.of(level, "key"), ids.of(level, "value")
    return {
        "type": "map", "key-id": key, "key": _type(kind["keyType"], of_key, ids, column),
        "value-id": value, "value-required": False,
        "value": _type(kind["valueType"], of_value, ids, column),
    }  # fmt: skip


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
        "history_not_publishable",
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
