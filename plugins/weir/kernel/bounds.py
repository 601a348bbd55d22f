"""Which columns of a Parquet file have bounds in its footer: none that has a NaN. Writers leave NaN
out of the bounds, and engines to which it is larger than all numbers would skip the rows with it.
"""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc


def bounded(rows: pa.Table, *, all_of_file: bool = True) -> bool | list[str]:
    """Return which columns of rows may have bounds, as pyarrow's `write_statistics`: all of them,
    or the paths of those without a NaN. `all_of_file`: no other rows follow, of which it is not
    known whether they have one."""
    leaves = [
        leaf
        for field, values in zip(rows.schema, rows.columns, strict=True)
        for leaf in _leaves(field.name, field.type, values if all_of_file else None)
    ]
    kept = [path for path, may in leaves if may]
    return True if len(kept) == len(leaves) else kept


def _leaves(
    path: str, kind: pa.DataType, values: pa.ChunkedArray | None
) -> Iterator[tuple[str, bool]]:
    """Yield the path of each leaf of a column, and whether it may have bounds. `values`: None if
    they are not known."""
    if pa.types.is_struct(kind):
        parts = [None] * len(kind) if values is None else values.flatten()
        for field, part in zip(kind, parts, strict=True):
            yield from _leaves(f"{path}.{field.name}", field.type, part)
    elif pa.types.is_map(kind):
        for name, of_kind in (("key", kind.key_type), ("value", kind.item_type)):
            part = None if values is None else _of_map(values, name)
            yield from _leaves(f"{path}.key_value.{name}", of_kind, part)
    elif (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    ):
        part = None if values is None else pc.list_flatten(values)
        yield from _leaves(f"{path}.list.element", kind.value_type, part)
    elif pa.types.is_floating(kind):
        known = values is not None and not pa.types.is_float16(kind)
        yield path, known and not pc.any(pc.is_nan(values)).as_py()
    else:
        yield path, True


def _of_map(values: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Return the keys or the values of maps."""
    kind = values.type.key_type if name == "key" else values.type.item_type
    parts = [one.keys if name == "key" else one.items for one in values.chunks]
    return pa.chunked_array(parts, kind)
