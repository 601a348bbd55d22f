"""Values as the texts that routing keys have (semantics 1.6): as Spark casts them in UTC."""

import pyarrow as pa
import pyarrow.compute as pc

from weir.kernel.texts import moments

_MOST_SCALE = 6  # with more, pyarrow writes small numbers with an exponent


def as_texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values as texts. Raises TypeError for a type of which versions of programs write the
    same value in different ways, and for nested ones."""
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return values.cast(pa.string())
    if pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        found = moments(values)
        if pa.types.is_date32(kind):
            return found
        return pc.replace_substring_regex(found, r"\.?0*$", "") if len(found) else found
    if pa.types.is_decimal(kind):
        if kind.scale <= _MOST_SCALE:
            return values.cast(pa.string())
        known = values.unique().drop_null()
        shown = pa.array([format(one, "f") for one in known.to_pylist()], pa.string())
        return pa.chunked_array([shown.take(pc.index_in(values, value_set=known).combine_chunks())])
    raise TypeError(kind)
