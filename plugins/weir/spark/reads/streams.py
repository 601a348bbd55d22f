"""Read streams as a DataFrame from programs: one, or several in one order."""

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import Connection

from weir.arrow.event_time import event_span
from weir.arrow.read import check_newest, unknown_column
from weir.controller.locks import read_stream
from weir.controller.missing import Missing, missing_between
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices, plan, plan_of_stream
from weir.controller.streams import schema_at
from weir.controller.times import Moment, Span, close_now, close_span, parse_span
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.kernel.matching import Matching
from weir.model.names import StreamName, stream_name
from weir.model.schema import PLACES
from weir.settings import Settings, load
from weir.spark.base.exact import quoted
from weir.spark.base.python_workers import with_own_code
from weir.spark.base.session import check_session
from weir.spark.failures.lost_files import saying_why
from weir.spark.reads.frames import frame_of, merged_frame


def read(
    streams: str | Sequence[str],
    *,
    order: str = "",
    start: Cut | None = None,
    end: Cut | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    event_time_since: Moment | None = None,
    event_time_until: Moment | None = None,
    columns: Sequence[str] | None = None,
    schema_version: int | None = None,
    spark: SparkSession | None = None,
    settings: Settings | None = None,
) -> DataFrame:
    """Return the events of a stream with `_segment`, `_offset` and `_clock`, or those of several
    streams in one order.

    One stream, by its name: `order` is "segment" (default: the events of each routing key are in
    order, in one task, or if their segment is a large part of the read, in tasks that follow one
    another), "stream" (write order) or "none" (fastest). `start` and `end` are stream cuts; by
    default, head and tail.

    A list of streams: in write order over all of them, by clock, then by the names of the streams;
    the column `_stream` has the name. `columns`: those that all streams have with the same type, or
    the named ones, null where a stream lacks one. The read ends at one moment in all streams, which
    is closed: a later read begins with the same events.

    `since` and `until` take what was committed after one time and up to another (in UTC, unless
    they have another offset), as far as it can still be read. The later one is closed first, so the
    same times give the same events again. `event_time_since` and `event_time_until`, of one
    stream: only the events whose event time is at or after the one and before the other; files that
    have none are not opened. `schema_version`, of one stream: an older version of its
    columns (semantics 5.5). `spark`: by default the active session; `settings`: those
    of jobs (`WEIR_CONFIG`, or `weir.toml`).

    Warns with `weir.TruncatedWarning`, per stream, how many events after `since` were truncated;
    without a start if there is no event left to return.

    Raises NotFound for a stream that does not exist; InvalidInput for a wrong order, cut, time or
    column; Truncated if events after `start` were truncated.
    """
    span = parse_span(since, until)
    span.check_alone(start, end)
    spark = spark or SparkSession.active()
    check_session(spark)
    settings = settings or load()
    one = isinstance(streams, str)
    names = [stream_name(name) for name in ([streams] if isinstance(streams, str) else streams)]
    if not one:
        _check_several(
            names, order=order, start=start, end=end, schema_version=schema_version,
            event_time_since=event_time_since, event_time_until=event_time_until,
        )  # fmt: skip
    events = event_span(event_time_since, event_time_until)
    check_newest(events, schema_version)
    matches: list[Matching] = []
    with Database.of(settings) as database:
        close_span(database, names, span)
        if not one and span.until is None:  # the streams end at one moment
            span = Span(span.since, close_now(database, names))
        first, last = span.since or start, span.until or end

        def found(connection: Connection) -> tuple[list[Slices], list[Missing]]:
            planned, missing = [], []
            for name in names:
                row, within = read_stream(connection, name), span
                if events and start is None and end is None:
                    within = events.commits(connection, row, span)
                if first is None and last is None and within == span:
                    stream_id, slices, fields = plan_of_stream(connection, name)
                else:
                    stream_id = row.stream_id
                    slices, fields = plan(connection, name, within.since or start,
                                          within.until or end)  # fmt: skip
                if events:
                    matches[:] = [events.matching(row, fields)]
                    slices = events.files(connection, stream_id, slices)
                if schema_version is not None:
                    fields = schema_at(connection, stream_id, schema_version)
                planned.append(Slices(str(name), stream_id, slices, fields))
                if start is None and end is None:
                    lacks = missing_between(connection, name, *within, empty=not slices)
                    missing += [lacks] if lacks else []
            return planned, missing

        planned, missing = database.snapshot(found)
    for lacks in missing:
        lacks.warn()
    with saying_why(database, settings):
        if not one:
            return merged_frame(spark, settings, planned, columns)
        [read] = planned
        frame = frame_of(spark, settings, read, order=order or "segment")
    if matches:
        frame = matching_of(frame, *matches)
    if columns is None:
        return frame
    if unknown := [name for name in columns if name not in frame.columns]:
        raise unknown_column(names[0], unknown[0], [field["name"] for field in read.fields])
    return frame.select(*quoted([*columns, *(name for name in PLACES if name not in columns)]))


def matching_of(frame: DataFrame, match: Matching) -> DataFrame:
    """Return the rows that match, each task's in their order."""

    def matching(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            yield from rows.filter(match.rows(rows)).to_batches()

    with with_own_code(frame.sparkSession):
        return frame.mapInArrow(matching, frame.schema)


def _check_several(names: Sequence[StreamName], **of_one: object) -> None:
    """Check the streams of a list, and that nothing is given which is of one. Raises
    InvalidInput."""
    if not names or len(set(names)) < len(names):
        raise InvalidInput(
            "argument_invalid",
            f"the streams are {', '.join(map(str, names)) or 'none'}; name at least one, and each "
            "once.",
        )
    for what, value in of_one.items():
        if value not in (None, "", "stream"):
            raise InvalidInput(
                "argument_invalid",
                f"{what} is {value!r}, which is of one stream; leave it out: several streams are "
                "read in write order, with their newest columns, between since and until.",
            )
