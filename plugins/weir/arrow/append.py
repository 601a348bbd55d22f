"""Append small amounts of data without a JVM, as pyarrow tables.

The transactions, the files and the order are the same as with Spark: either can write a stream and
the other can read it.
"""

from datetime import datetime

import pyarrow as pa

from weir.arrow.rejected import staged_rejected
from weir.arrow.tables import in_types
from weir.controller.attempts import writing
from weir.controller.commit import commit_begun
from weir.controller.staged import check_written
from weir.controller.transactions import Committed, begin
from weir.installation.opened import Installation
from weir.kernel.writer import stage_table
from weir.model.names import stream_name
from weir.warehouse.filesystem import not_writable


def append_table(
    app: Installation,
    stream: str,
    table: pa.Table,
    *,
    writer_id: str,
    batch_id: str,
    complete_until: datetime | str | None = None,
) -> Committed:
    """Append the rows of a pyarrow table to a stream, in the order of the table, in one
    transaction. Return what was committed, now or by an earlier try (`repeated`).

    `writer_id` and `batch_id` identify the append. They alone decide: if a table was committed
    under them, nothing is appended, even if this one has other rows, because Weir does not compare
    them (semantics 12). `complete_until`: the event time before which this writer has appended
    everything with this append (a datetime, a text, or `done`).

    Raises BadRows for rows without a routing key and values that would change, unless the stream
    quarantines them, with their number and an example; InvalidInput for columns that do not fit the
    stream, its routing key or its event time, and for a wrong `complete_until`; NotFound for a
    stream that does not exist; Conflict if the stream is sealed, or if the identity was used for
    files or a DataFrame; Fenced if another try took over, or if what was written is gone;
    Unavailable if the warehouse takes no files; InvariantViolation if the warehouse is not this
    database's.
    """
    database, settings = app.database, app.settings
    begun = begin(
        database, stream_name(stream), writer_id=writer_id, batch_id=batch_id,
        fingerprint="table", lease=settings.transaction_lease, source=app.source,
        complete_until=complete_until,
    )  # fmt: skip
    if isinstance(begun, Committed):
        return begun
    opened = [begun]
    with writing(database, settings, opened):
        try:
            typed = in_types(table, begun.fields)
            staged = staged_rejected(app, stage_table(settings.warehouse, begun, typed), opened)
        except OSError as error:
            raise not_writable(settings.warehouse, error) from error
        check_written(settings.warehouse, staged)
        return commit_begun(database, *staged)[0]
