"""In which form files store their columns. Files of one form can be put together."""

import io
from functools import lru_cache
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from weir.compaction.description import without_description
from weir.model.schema import CLOCK, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER, field_id

_ADDED = (CLOCK, CLOCK_BY_NUMBER, OFFSET, PLACE_BY_NUMBER)
_ARROW = b"ARROW:schema"  # pyarrow's own note, which it makes anew


class Leaf(NamedTuple):
    """How a file stores a simple column, or one in another."""

    path: str
    physical: str
    logical: str
    length: int
    definition: int
    repetition: int


class Form(NamedTuple):
    """How a file stores its columns, but for the clock. Files of one form can be put together."""

    arrow: pa.Schema
    leaves: tuple[Leaf, ...]
    notes: tuple[tuple[bytes, bytes], ...]
    codec: str


def form_of(file: pq.ParquetFile) -> Form:
    schema, metadata = file.schema, file.metadata
    arrow = file.schema_arrow
    for name in {*_ADDED} & {*arrow.names}:
        arrow = arrow.remove(arrow.get_field_index(name))
    notes = without_description(metadata.metadata or {})
    notes.pop(_ARROW, None)
    codec = metadata.row_group(0).column(0).compression if metadata.num_row_groups else "SNAPPY"
    return Form(
        arrow.remove_metadata(), _leaves(schema), tuple(sorted(notes.items())), codec.lower()
    )


def _leaves(schema: pq.ParquetSchema) -> tuple[Leaf, ...]:
    columns = [schema.column(i) for i in range(len(schema))]
    return tuple(
        Leaf(c.path, c.physical_type, str(c.logical_type), c.length, c.max_definition_level,
             c.max_repetition_level)
        for c in columns if c.path not in _ADDED
    )  # fmt: skip


def options(form: Form) -> dict[str, str | bool]:
    """Return how pyarrow is to write a form, so that it stays what it is."""
    kinds = {(leaf.physical, leaf.logical.partition("(")[0]) for leaf in form.leaves}
    return {
        "compression": "none" if form.codec == "uncompressed" else form.codec,
        "use_deprecated_int96_timestamps": any(kind == "INT96" for kind, _ in kinds),
        "store_decimal_as_integer": bool({("INT32", "Decimal"), ("INT64", "Decimal")} & kinds),
    }


@lru_cache(maxsize=64)
def is_kept(form: Form) -> bool:
    """Return whether pyarrow writes a form as it is."""
    written = io.BytesIO()
    try:
        pq.write_table(form.arrow.empty_table(), written, **options(form))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    again = pq.ParquetFile(pa.BufferReader(written.getvalue()), coerce_int96_timestamp_unit="us")
    return (_leaves(again.schema), again.schema_arrow.remove_metadata()) == (
        form.leaves, form.arrow,
    )  # fmt: skip


def of_both(one: Form, other: Form) -> Form | None:
    """Return the form of a file with the columns of two forms; None if they store a column in
    different ways, or if a row without one of the columns would not be the same with a null.

    Files of one schema version have all columns with defaults, so what one lacks is null in it.
    Spark notes the columns of a file in its footer, so its files have to have the same."""
    if one.notes or other.notes or one.codec != other.codec:
        return None
    first, second = _columns(one), _columns(other)
    whole = {**first, **{name: c for name, c in second.items() if name not in first}}
    if any("." in name for name in whole):  # the leaves of which column is not clear
        return None
    if any(first[name] != second[name] for name in first.keys() & second.keys()):
        return None
    for name in first.keys() ^ second.keys():
        if name.startswith("_weir") or not whole[name][0].nullable:
            return None
    leaves = tuple(leaf for _, some in whole.values() for leaf in some)
    return one._replace(arrow=pa.schema([field for field, _ in whole.values()]), leaves=leaves)


def _columns(form: Form) -> dict[str, tuple[pa.Field, list[Leaf]]]:
    leaves: dict[str, list[Leaf]] = {}
    for leaf in form.leaves:
        leaves.setdefault(leaf.path.partition(".")[0], []).append(leaf)
    return {field.name: (field, leaves.get(field.name, [])) for field in form.arrow}


def numbered(schema: pa.Schema) -> pa.Schema:
    """Return a schema with field ids. DuckLake finds the clocks by one, and readers of Iceberg look
    for all columns by theirs if one has any (decision 88)."""
    return pa.schema([_with_id(field, ()) for field in schema], schema.metadata)


def _with_id(field: pa.Field, above: tuple[str, ...], name: str = "") -> pa.Field:
    path = (*above, name or field.name)
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_with_id(one, path) for one in kind])
    elif pa.types.is_map(kind):
        key, value = (kind.key_field, "key"), (kind.item_field, "value")
        kind = pa.map_(*[_with_id(one, path, called) for one, called in (key, value)])
    elif pa.types.is_list(kind):
        kind = pa.list_(_with_id(kind.value_field, path, "element"))
    return field.with_type(kind).with_metadata({"PARQUET:field_id": str(field_id(path))})
