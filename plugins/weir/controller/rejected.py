"""Streams of rejected rows: `<stream>.rejected`, for the rows that did not become its events."""

import contextlib

from weir.controller.streams import create_in
from weir.database.connection import Database
from weir.errors import Conflict
from weir.model.names import StreamName, stream_name
from weir.model.stream_configuration import Configuration

# The column, the text and the type of the first value that did not fit.
FAULT = ("column", "text", "type")
FIELDS = [
    {"name": name, "type": kind, "nullable": True, "metadata": {}}
    for name, kind in [("row", "string"), ("source", "string"), ("place", "long"),
                       ("reason", "string"), *((name, "string") for name in FAULT)]
]  # fmt: skip
_REJECTED = Configuration("source", on_missing_key="spread", on_new_column="add")


def make_rejected_stream(database: Database, stream: StreamName) -> StreamName:
    """Create `<stream>.rejected` if it does not exist, and return its name."""
    name = stream_name(str(stream.rejected))
    with contextlib.suppress(Conflict):  # it already exists
        database.transaction(lambda c: create_in(c, name, _REJECTED, 1, FIELDS, "rejected"))
    return name
