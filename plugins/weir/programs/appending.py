"""Append rows that a program has, whatever they are: without Spark, unless they are Spark's."""

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, TypedDict

from weir.arrow.append import append_table
from weir.arrow.tables import as_table
from weir.controller.transactions import Committed
from weir.errors import InvalidInput, check_text
from weir.installation.extras import naming_extras
from weir.installation.opened import Installation


class _Identity(TypedDict):
    writer_id: str
    batch_id: str
    complete_until: datetime | str | None


def append_rows(
    app: Installation,
    stream: str,
    rows: Any,
    *,
    writer_id: str = "",
    batch_id: str = "",
    complete_until: datetime | str | None = None,
) -> Committed:
    """Append rows to a stream, and return what was committed: see `weir.StreamStore.append`."""
    for name, given in (("writer_id", writer_id), ("batch_id", batch_id)):
        check_text(name, given)
    of_writer = "complete_until" if complete_until is not None else batch_id and "batch_id"
    if of_writer and not writer_id:
        raise InvalidInput(
            "argument_missing",
            f"writer_id is missing: {of_writer} holds for one writer; name it, always the same.",
        )
    identity = _Identity(
        writer_id=writer_id or "program", batch_id=batch_id or uuid.uuid4().hex,
        complete_until=complete_until,
    )  # fmt: skip
    if type(rows).__module__.startswith("pyspark.") and hasattr(rows, "mapInArrow"):
        with naming_extras():
            from weir.spark.appends.appender import Appender
        of_rows = replace(app, start_spark=lambda: rows.sparkSession)
        return Appender(of_rows).append_frame(stream, rows, **identity)
    table = as_table(rows)
    if not table.column_names:
        raise InvalidInput(
            "columns_invalid",
            f"there is nothing to append to {stream}: the rows have no columns; leave such an "
            "append out.",
        )
    return append_table(app, stream, table, **identity)


def append_query(
    app: Installation,
    stream: str,
    query: str,
    parameters: Mapping[str, object],
    *,
    writer_id: str,
    batch_id: str,
    complete_until: datetime | str | None = None,
) -> Committed:
    """Append what a query of Spark gives, with the session of the installation, as
    `Appender.append_frame`. What is committed under this identity is found without asking anything.

    `parameters`: the values of `:name` in the query, which Spark binds. Raises InvalidInput for a
    query that Spark can't resolve, too."""
    with naming_extras():
        from weir.spark.appends.appender import Appender
        from weir.spark.inputs.queries import queried
    return Appender(app).append_frame(
        stream, lambda: queried(app.spark, query, parameters), writer_id=writer_id,
        batch_id=batch_id, complete_until=complete_until,
    )  # fmt: skip
