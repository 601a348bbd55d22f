"""What an adjunct store makes of the events of its stream: which key, which value, and whether the
key is deleted. Types are known without events, and nothing needs Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeGuard

import pyarrow as pa

from weir.adjunct.stores import AdjunctStore, routing_key_of
from weir.adjunct.versions import find_version
from weir.controller.streams import schema_by_id
from weir.database.connection import Database
from weir.errors import InvalidInput, check_choice
from weir.kernel.key_texts import as_texts
from weir.kernel.schema import arrow_type, to_arrow
from weir.kernel.transforms import Computation, condition_over
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.declared_columns import declared_columns
from weir.model.names import check_user_columns
from weir.model.schema import Field, Kind, Struct, new_field, show, stored_name, without_metadata
from weir.model.transform_nodes import Column
from weir.model.transforms import condition_of, is_alone, value_of, values_of

KEY = "_weir_key"


@dataclass(frozen=True)
class Part:
    """A part of a definition. `what`: how a reason calls it. `columns`: by name what computes them;
    one without a name is all of the part. `function`: who is asked instead. `type`: of its values,
    in Spark's JSON form; `arrow`: the same for pyarrow. `as_text`: whether they become texts."""

    what: str
    type: Kind
    arrow: pa.DataType
    columns: Mapping[str, Computation] = field(default_factory=dict)
    function: str = ""
    as_text: bool = False

    @property
    def plain(self) -> dict[str, str] | None:
        """By name the columns of the events that it is, if it is no more."""
        found = {name: one.transform.plain for name, one in self.columns.items()}
        known = {name: plain for name, plain in found.items() if plain is not None}
        return known if found and len(known) == len(found) else None


@dataclass(frozen=True)
class Parts:
    """The parts of a definition over events with these columns (`events`). No `value`: the whole
    event. No `deletes`: no event does."""

    events: Sequence[Field]
    key: Part
    value: Part | None = None
    deletes: Part | None = None

    @property
    def fields(self) -> list[Field]:
        """The columns of a version; those of whole events with their names in files."""
        key: Field = {**new_field(KEY, self.key.type), "nullable": False}
        if self.value is None:
            of_events = without_metadata(list(self.events))
            values = [new_field(one["name"], one["type"]) for one in of_events]
            for value, event in zip(values, self.events, strict=True):
                if "stored" in event:
                    value["stored"] = stored_name(event)
            return [key, *values]
        kind = self.value.type
        return [key, *(kind["fields"] if is_struct(kind) else [new_field("value", kind)])]


def is_struct(kind: Kind) -> TypeGuard[Struct]:
    """Return whether a value of this type has columns of its own."""
    return isinstance(kind, dict) and kind["type"] == "struct"


def check_written(definition: AdjunctDefinition, store: str) -> None:
    """Check what can be understood of a definition without the columns of a stream. Raises
    InvalidInput."""
    of = f"of adjunct store {store},"
    if definition.key_type:
        _declared_key(definition)
    elif definition.key:
        value_of(definition.key, f"key {of}")
    if definition.value_columns:
        declared_columns(definition.value_columns, "value_columns")
    elif definition.value:
        values_of(definition.value, f"value {of}")
    if definition.delete_when:
        condition_of(definition.delete_when, f"delete condition {of}")


def parts_of(
    definition: AdjunctDefinition, fields: Sequence[Field], routing_key: str, store: str
) -> Parts:
    """Return what a definition makes of events with these columns. Raises InvalidInput for what
    can't be computed of them, and for types that keys and conditions can't have."""
    of = f"of adjunct store {store},"
    schema = to_arrow(list(fields))
    deletes = None
    if text := definition.delete_when:
        what = f"delete condition {of}"
        found = condition_over(condition_of(text, what), schema, what)
        deletes = Part(f"the delete condition {text!r}", "boolean", pa.bool_(), {"": found})
    return Parts(
        fields,
        _key(definition, fields, schema, routing_key, f"key {of}"),
        _value(definition, fields, schema, f"value {of}") if definition.value else None,
        deletes,
    )


def _key(
    definition: AdjunctDefinition, fields: Sequence[Field], schema: pa.Schema, routing_key: str,
    what: str,
) -> Part:  # fmt: skip
    if definition.key_type:
        return _of_function(f"the key {definition.key!r}", definition.key,
                            _declared_key(definition)["type"])  # fmt: skip
    written = definition.key or routing_key
    found = Computation.of(value_of(written, what), schema, what)
    if not _is_key(found.type):
        raise InvalidInput(
            "column_type_unsupported",
            f"the {what} {written!r}, is of type {show(_type(found, fields))}; make it text, a "
            "whole number, a decimal, a date, a time or a boolean, for example with "
            "cast(... as decimal(10,2)).",
        )
    as_text = not definition.key  # a routing key is always text
    kind, arrow = ("string", pa.string()) if as_text else (_type(found, fields), found.type)
    return Part(f"the key {written!r}", kind, arrow, {"": found}, as_text=as_text)


def _declared_key(definition: AdjunctDefinition) -> Field:
    """Return the declared type of a key, as a column. Raises InvalidInput."""
    declared = declared_columns(f"value {definition.key_type}", "key_type")
    if len(declared) != 1 or not _is_key(arrow_type(declared[0]["type"])):
        raise InvalidInput(
            "columns_invalid",
            f"key_type {definition.key_type!r} is not the type of a key; write one type: STRING, a "
            "whole number, DECIMAL, DATE, TIMESTAMP or BOOLEAN.",
        )
    return declared[0]


def _is_key(kind: pa.DataType) -> bool:
    try:
        as_texts(pa.chunked_array([], kind))
    except TypeError:
        return False
    return True


def _value(
    definition: AdjunctDefinition, fields: Sequence[Field], schema: pa.Schema, what: str
) -> Part:
    shown = f"the value {definition.value!r}"
    if definition.value_columns:
        declared = declared_columns(definition.value_columns, "value_columns")
        return _of_function(shown, definition.value, {"type": "struct", "fields": declared})
    transforms = values_of(definition.value, what)
    found = {name: Computation.of(one, schema, what) for name, one in transforms.items()}
    types = [new_field(name, _type(one, fields)) for name, one in found.items()]
    if is_alone(definition.value, transforms):
        [(only, kind)] = zip(found.values(), types, strict=True)
        if is_struct(kind["type"]):
            check_user_columns([one["name"] for one in kind["type"]["fields"]])
        return Part(shown, kind["type"], only.type, {"": only})
    columns = [pa.field(name, one.type) for name, one in found.items()]
    return Part(shown, {"type": "struct", "fields": types}, pa.struct(columns), found)


def _of_function(what: str, function: str, kind: Kind) -> Part:
    return Part(what, kind, arrow_type(kind), function=function)


def _type(found: Computation, fields: Sequence[Field]) -> Kind:
    """Return the type of what is computed: of a column or a field of one, the type that it has,
    which pyarrow may not tell."""
    node = found.transform.node
    if not isinstance(node, Column):
        return found.kind
    kind: Kind = {"type": "struct", "fields": without_metadata(list(fields))}
    for name in node.path:
        assert is_struct(kind), node.path
        within = {one["name"].lower(): one["type"] for one in reversed(kind["fields"])}
        kind = within[name.lower()]
    return kind


def joined_on(text: str, schema: pa.Schema, store: str) -> Computation:
    """Return what computes the keys by which events find the rows of a store. Raises InvalidInput
    for what can't be computed of the events."""
    what = "key on which events are joined"
    try:
        return Computation.of(value_of(text, what), schema, what)
    except InvalidInput as error:
        raise InvalidInput(
            "join_invalid",
            f"the key on which events are joined with adjunct store {store} can't be computed from "
            f"them ({error.sentence.rstrip('.')}); name a column of the events.",
        ) from None


def joined_values(
    store: str, how: str, events: Sequence[str], rows: Sequence[str], prefix: str
) -> list[str]:
    """Return which columns of a store's rows events get. Raises InvalidInput for another `how`, and
    for a name that the events have, in whatever case."""
    check_choice("how", how, ("left", "inner"))
    values = [one for one in rows if one not in (KEY, "_clock")]
    theirs = {column.lower() for column in events}
    if twice := [prefix + value for value in values if (prefix + value).lower() in theirs]:
        raise InvalidInput(
            "join_invalid",
            f"the events and adjunct store {store} both have a column {twice[0]}; give enrich a "
            "prefix for the columns of the store.",
        )
    return values


def columns_of(database: Database, store: AdjunctStore) -> list[Field]:
    """Return the columns of a store's newest version; before the first one those that it will have,
    as far as the columns of the stream are known."""
    newest, columns, routing_key = database.snapshot(
        lambda c: (
            find_version(c, store.store_id), schema_by_id(c, store.stream_id),
            routing_key_of(c, store.stream_id),
        )
    )  # fmt: skip
    if newest is not None:
        return list(newest.fields)
    if columns:
        return parts_of(store.definition, columns, routing_key, store.name).fields
    return [new_field(KEY, "string")]
