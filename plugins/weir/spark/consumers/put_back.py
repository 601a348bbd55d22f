"""Put rejected events back: call the consumer's function, once it is mended, with the events that
it had failed on, and publish the result to its outputs.

A reader group of its own reads `<stream>.rejected`, in write order. So each event is put back
exactly once, in the order in which the events were rejected: those of a routing key in their own
order, but after the events of the key that the consumer has read meanwhile.
"""

import contextlib
import functools
import uuid
from collections.abc import Callable, Mapping, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType
from sqlalchemy import Connection, text

from weir.consumers.consumer import Consumed, Consumer
from weir.consumers.outputs import Output
from weir.controller.locks import read_stream
from weir.controller.streams import schema_versions
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound
from weir.installation.opened import Installation
from weir.model.column_changes import typed_before
from weir.model.names import StreamName, reader_group_name, stream_name
from weir.model.schema import (
    PLACES,
    Field,
    Kind,
    parts_of,
    stored_name,
    with_parts,
    without_metadata,
)
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.group_streams import group_streams
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.locks import no_such_group
from weir.spark.base.exact import EXACT, quoted
from weir.spark.base.stored_columns import stored_schema
from weir.spark.consumers.connect_engine import engine_for

SUFFIX = "-put-back"  # of the name of the group that reads the rejected events of another


def put_back(
    app: Installation,
    group: str,
    reader_id: str,
    function: Callable[..., object],
    outputs: Sequence[Output],
    parameters: Mapping[str, object],
) -> Consumed:
    """Put back the events that a group has rejected and that were not put back before. Return what
    was done; its `events` also count what other groups have rejected, which is left out.

    Raises NotFound for the group, InvalidInput for outputs for which the order would matter,
    Conflict if another group has the name of the one that reads the rejected events, and
    BatchFailed if the function fails again; then the next run begins with the same events.
    """
    database = app.database
    schemas, rejected = database.transaction(lambda c: _rejected_streams(c, group))
    if not schemas:
        raise no_such_group(group)
    if not rejected:
        app.say(f"reader group {group} has rejected no events")
        return {"reader_group": group, "batches": [], "events": 0, "rejected": 0}
    _make_group(database, group, rejected)

    @functools.wraps(function)  # what is recorded of the run is the user's function
    def again(events: DataFrame | dict[str, DataFrame], **given: object) -> object:
        several = events if isinstance(events, dict) else {str(rejected[0]): events}
        restored = {
            str(name): restored_events(app.spark, several.get(str(name.rejected)), group, versions)
            for name, versions in schemas.items()
        }
        one = next(iter(restored.values())) if len(restored) == 1 else restored
        return function(one, **given)

    return Consumer(
        app, engine_for(app), _name_for(group), reader_id, again, tuple(outputs),
        Reading.of(app.settings, order="stream"), parameters=parameters,
    ).run()  # fmt: skip


def _make_group(database: Database, group: str, rejected: Sequence[StreamName]) -> None:
    """Create the group that reads these streams, with the same owner. One of an earlier run gets
    the streams that were made since then."""
    name, wanted = _name_for(group), {str(one) for one in rejected}
    request_id = f"put back {uuid.uuid4()}"
    owner = database.transaction(
        lambda c: c.execute(
            text("SELECT owner FROM reader_group WHERE name = :name"), {"name": group}
        ).scalar()
    )
    try:
        create_reader_group(
            database, name, rejected, subscriber=False, owner=owner, request_id=request_id
        )
        return
    except Conflict:
        there = {s.name for s in database.transaction(lambda c: group_streams(c, name))}
    if others := there - wanted:
        raise Conflict(
            "group_exists",
            f"reader group {name} reads {min(others)}, but a group of this name is to read the "
            f"events that {group} has rejected; delete it, or fork {group} under another name.",
        )
    if there != wanted:
        update_reader_group(database, name, streams=rejected, request_id=request_id)


def _name_for(group: str) -> str:
    try:
        return reader_group_name(group + SUFFIX)
    except InvalidInput:
        raise InvalidInput(
            "name_invalid",
            f"the rejected events of reader group {group} would be read by a group {group}"
            f"{SUFFIX}, whose name is too long; fork the group under a shorter name.",
        ) from None


def _rejected_streams(
    connection: Connection, group: str
) -> tuple[dict[StreamName, list[tuple[int, list[Field]]]], list[StreamName]]:
    """Return the versions of the schema of each stream of a group, and the streams of rejected rows
    that exist."""
    schemas, rejected = {}, []
    for stream in group_streams(connection, group):
        name = stream_name(stream.name)
        schemas[name] = schema_versions(connection, stream.stream_id)
        with contextlib.suppress(NotFound):
            rejected.append(read_stream(connection, stream_name(str(name.rejected))).name)
    return schemas, rejected


def restored_events(
    spark: SparkSession,
    rejected: DataFrame | None,
    group: str,
    versions: Sequence[tuple[int, list[Field]]],
) -> DataFrame:
    """Return the events of rows of `<stream>.rejected` that a group has failed on, with the segment
    and the offset that they have in their stream, and the clock at which they were rejected.

    A text is read with the type that its column had when the event was rejected: that of a float
    means another double."""
    fields = versions[-1][1] if versions else []
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    if rejected is None:
        places = [StructField(name, LongType()) for name in PLACES]
        return spark.createDataFrame([], StructType([*schema.fields, *places]))
    source = f"group {group}, segment "
    rows = rejected.where(F.col("source").startswith(source))
    number, _, epoch = (F.split(F.substring_index("source", " ", -1), "[.]")[i] for i in (0, 0, 1))
    event = _parsed(fields)
    for until, then in reversed(typed_before(versions)):
        wide = _parsed(then).cast(stored_schema(fields))
        event = F.when(F.col("_clock") < until, wide).otherwise(event)
    return rows.select(
        F.shiftleft(epoch.cast("long"), 32).bitwiseOR(number.cast("long")).alias("_segment"),
        F.col("place").alias("_offset"), "_clock", event.alias("_weir_event"),
    ).select(
        *[
            F.col("_weir_event").getField(stored_name(field)).alias(field["name"])
            for field in fields
        ],
        *quoted(PLACES),
    )  # fmt: skip


def _parsed(fields: list[Field]) -> Column:
    """Return the event in the text of a rejected row, with the columns of its stream. The keys of
    maps are texts in JSON, and Spark reads no others."""
    texts: list[Field] = [{**one, "type": _with_texts_as_keys(one["type"])} for one in fields]
    event = F.from_json("row", stored_schema(texts), {**EXACT, "mode": "FAILFAST"})
    return event if texts == fields else event.cast(stored_schema(fields))


def _with_texts_as_keys(kind: Kind) -> Kind:
    parts = list(map(_with_texts_as_keys, parts_of(kind)))
    if not isinstance(kind, str) and kind["type"] == "map":
        parts[0] = "string"
    return with_parts(kind, parts)
