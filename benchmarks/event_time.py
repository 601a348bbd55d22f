"""Appending with an event time beside appending the same rows without."""

from datetime import UTC, datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from benchmarks.data_path import RANGES, ROWS, appender, source
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.model.names import StreamName, stream_name

BEGIN = 1_370_044_800  # 2013-06-01; an event a second


def _stream(setting: Setting, event_time: str | None) -> StreamName:
    """Return a new stream with 16 unequal segments."""
    name = stream_name(f"bench/t{setting.number()}")
    create_stream(
        setting.database, name, routing_key="key", segments=1, event_time=event_time,
        request_id=str(name),
    )  # fmt: skip
    scale(setting.database, name, seal=["0.0"], ranges=RANGES, request_id=f"{name} 16")
    return name


def _count(setting: Setting) -> int:
    return ROWS if setting.full else ROWS // 2


def _rows(setting: Setting) -> DataFrame:
    """Return the rows with a time, as a timestamp (`at`) and as a text (`time_text`)."""
    path = setting.folder / "timed"
    if not path.exists():
        rows = source(setting).where(F.col("id") < _count(setting))  # source makes the session
        at = F.timestamp_seconds(F.col("id") + BEGIN)
        text = F.date_format(at, "yyyy-MM-dd HH:mm:ss")
        rows.withColumn("at", at).withColumn("time_text", text).write.parquet(str(path))
    return setting.spark.read.parquet(str(path))


def _append(setting: Setting, name: str, event_time: str, limit: float | None, what: str) -> Figure:
    rows = _rows(setting)
    timed, plain = _stream(setting, event_time), _stream(setting, None)
    count = _count(setting)
    late = count // 5
    until = datetime.fromtimestamp(BEGIN + late, UTC)

    def append(to: StreamName, **how: datetime) -> None:
        appender(setting).append_frame(
            to, rows, writer_id="bench", batch_id=str(setting.number()), **how
        )

    return Figure(
        name,
        f"{count:,} rows into 16 unequal segments with {what} as event time, complete to a time "
        f"before which {late:,} of them are late, beside the same append without event time",
        lambda: append(timed, complete_until=until),
        lambda: append(plain),
        limit=limit,
        goal=1.0,
        warm_up=3,  # with one, the compiler of the JVM is still at work (see data_path.read)
    )


def column(setting: Setting) -> Figure:
    """Return the figure of an event time that is a column of timestamps with statistics."""
    return _append(setting, "order/event_time", "at", 1.03, "a column of timestamps")


def text(setting: Setting) -> Figure:
    """Return the figure of an event time that is a text, for which files get another column."""
    return _append(setting, "order/event_time_text", "time_text", None, "a column of texts")


FIGURES = {"order/event_time": column, "order/event_time_text": text}
