"""Check routing keys and event times before they are stored."""

from collections.abc import Sequence

from weir.errors import InvalidInput
from weir.kernel.event_time import check_type, missing_column
from weir.kernel.schema import to_arrow
from weir.kernel.transforms import Computation
from weir.model.declared_columns import declared_columns
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.model.transforms import value_of

KEY = "routing key"


def columns_of(text: str, key: str) -> list[Field] | None:
    """Return the columns that are declared for a new stream, among which are those of its routing
    key; None if none are. Raises InvalidInput for a key that is not allowed, and for columns that
    can't be read, or do not fit it."""
    transform = value_of(key, KEY)
    if not text.strip():
        return None
    fields = declared_columns(text)
    names = {field["name"].lower() for field in fields}
    for name in transform.columns:
        if name.lower() not in names:
            raise InvalidInput(
                "column_missing",
                f"the routing key uses {name!r}, which is not among the columns; declare it, or "
                "choose another routing key.",
            )
    Computation.of_key(transform, to_arrow(fields), KEY)
    return fields


def check_time(stream: StreamName, text: str, fields: Sequence[Field] | None) -> None:
    """Check the event time that a stream is to have; with its columns, if they are known. Raises
    InvalidInput for one that is not allowed, uses another column, or is no time."""
    what = f"event time of stream {stream},"
    transform = value_of(text, what)
    if fields is None:
        return
    kinds = {field["name"].lower(): field["type"] for field in fields}
    for name in transform.columns:
        if name.lower() not in kinds:
            raise missing_column(stream, text, name, [field["name"] for field in fields])
    kind = Computation.of(transform, to_arrow(list(fields)), what).kind
    plain = (transform.plain or "").lower()
    check_type(stream, text, kinds.get(plain, kind))  # Arrow has no variants
