"""Read several streams as one, in write order."""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from weir.controller.read_plan import Slices
from weir.errors import InvalidInput
from weir.model.schema import SEQ, Field, same_type, show, without_metadata
from weir.spark.base.session import moved
from weir.spark.reads.native import (
    PLACES,
    STREAM,
    in_tasks,
    most_tasks,
    resolving_session,
    scan_of,
)
from weir.spark.reads.tasks import tasks_in_write_order


def merged_frame(
    spark: SparkSession,
    warehouse: str,
    streams: Sequence[Slices],
    columns: Sequence[str] | None = None,
) -> DataFrame:
    """Return the rows of several streams in write order: by clock, then by the streams' names, then
    by rank. There is no shuffle.

    The columns: those that all streams have with the same type, or `columns`, which are null in the
    streams that lack them; then `_stream`, `_segment`, `_offset` and `_clock`. A stream that never
    had an event and declares no columns is left out of that. Raises InvalidInput for a column that
    no stream has, or that has several types.
    """
    fields = _fields(streams, columns)
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    with_events = sorted((one for one in streams if one.slices), key=lambda one: one.name)
    if not with_events:
        extra = [StructField(STREAM, StringType()), *(StructField(n, LongType()) for n in PLACES)]
        return spark.createDataFrame([], StructType([*schema.fields, *extra]))
    resolving = resolving_session(spark)
    tasks = tasks_in_write_order([one.slices for one in with_events], most_tasks(spark))
    scans = [
        scan_of(resolving, warehouse, one, schema, (STREAM, *PLACES), number, tasks, SEQ)
        for number, one in enumerate(with_events)
    ]
    return moved(in_tasks(scans, tasks), spark)


def _fields(streams: Sequence[Slices], columns: Sequence[str] | None) -> list[Field]:
    """Return the columns of a merged read."""
    known = [one for one in streams if one.fields]
    of_stream = {one.name: {f["name"].lower(): f for f in one.fields} for one in known}
    first = [f for one in known[:1] for f in one.fields]
    found = []
    for name in [f["name"] for f in first] if columns is None else columns:
        having = {s: one[name.lower()] for s, one in of_stream.items() if name.lower() in one}
        types = {show(field["type"]): s for s, field in having.items()}
        fields = list(having.values())
        same = all(same_type(field["type"], fields[0]["type"]) for field in fields)
        if columns is None:
            if same and len(having) == len(known) and name.lower() != STREAM:
                found.append({**fields[0], "nullable": True})
        elif not having:
            raise InvalidInput(
                "column_unknown",
                f"none of the streams {', '.join(one.name for one in streams)} has a column "
                f"{name!r}; choose among their columns.",
            )
        elif not same:
            shown = " and ".join(f"{kind} in {stream}" for kind, stream in types.items())
            raise InvalidInput(
                "column_type_differs",
                f"column {name!r} is {shown}; leave it out, or read the streams one by one.",
            )
        elif name.lower() == STREAM:
            raise InvalidInput(
                "column_name_reserved",
                f"column {name!r} has the name of the column that says which stream an event is "
                "from; leave it out, or read the streams one by one.",
            )
        else:
            found.append({**fields[0], "nullable": True})
    return found
