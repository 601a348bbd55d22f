"""Rows that do not become events. They are refused with their number and an example, or quarantined
in the reserved stream `<stream>.rejected`, in the same transaction: rows in = events + rejected
rows."""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.controller.rejected import Example, refusal, refused
from weir.kernel.attempt import Staged
from weir.kernel.event_time import COLUMN as TIME
from weir.kernel.rejected import BAD_ROW, FAULT, MISSING_KEY
from weir.model.names import shortened
from weir.model.schema import PLACES, SEQ, stored_name
from weir.settings import Settings
from weir.spark.base.exact import as_json, exact, quoted
from weir.spark.base.malformed import COLUMN, MALFORMED, ROW, TEXT, TYPE
from weir.spark.inputs.files import BLOCK_BITS, ROW_BITS, ROW_MASK
from weir.spark.inputs.text_hints import hint
from weir.warehouse.paths import spark_path

Origin = Callable[[int], tuple[str, int]]


def check_rejected(
    spark: SparkSession, settings: Settings, staged: Staged, origin: Origin, row: str
) -> None:
    """Raise BadRows with the number of rejected rows and an example, unless the stream quarantines
    them. `row`: what the number of a row within its file is called."""
    rows = _read(spark, settings, staged)
    examples: list[Example] = []
    for bad in refused(staged.attempt):
        these = rows.where(F.col("reason") == bad)
        if count := these.count():
            example = these.orderBy(SEQ).first()
            assert example is not None  # its rows were just counted
            source, number = origin(example[SEQ])
            where = f"{source!r}, {row} {number + 1}" if source else f"row {number + 1}"
            found = ""
            if example[COLUMN] is not None:
                text = shortened(example[TEXT], 60)
                found = f"column {example[COLUMN]!r} has {text}, which is not kept as "
                found += example[TYPE] + hint(example[TEXT], example[TYPE]) + "; the row is "
            found += str(example["row"])[:200]
            examples.append(Example(bad, count, where, found))
    if examples:
        raise refusal(staged.attempt, examples)


def rejected_rows(
    spark: SparkSession, settings: Settings, staged: Staged, origin: Origin, writer: str
) -> DataFrame:
    """Return the rejected rows of an append as rows of `<stream>.rejected`. The source of those
    that do not come from a file is the `writer`."""
    files = [origin(i << (BLOCK_BITS + ROW_BITS))[0] for i in _files(staged)]
    source = F.array(*[F.lit(file) for file in files])[
        F.shiftright(SEQ, BLOCK_BITS + ROW_BITS).cast("int")
    ]
    if not files[0]:  # rows of a DataFrame do not come from a file
        source = F.lit(writer)
    return _read(spark, settings, staged).select(
        "row", source.alias("source"),
        F.col(SEQ).bitwiseAND(F.lit(ROW_MASK)).alias("place"), "reason", COLUMN, TEXT, TYPE, SEQ,
    )  # fmt: skip


def failed_events(frame: DataFrame, group: str, reason: str) -> DataFrame:
    """Return events on which a reader group failed as rows of `<stream>.rejected`. Their source is
    the group and the segment, and their column `place` has the offset."""
    user = quoted([name for name in frame.columns if name not in PLACES])
    segment = segment_text(F.col("_segment"))
    return frame.select(
        as_json(F.struct(*user)).alias("row"),
        F.concat(F.lit(f"group {group}, segment "), segment).alias("source"),
        F.col("_offset").alias("place"),
        F.lit(reason).alias("reason"),
    )


def segment_text(segment: Column) -> Column:
    """Return the name of a segment, such as 3.1, from its id."""
    number = segment.bitwiseAND(F.lit(0xFFFFFFFF)).cast("string")
    return F.concat(number, F.lit("."), F.shiftright(segment, 32).cast("string"))


def _files(staged: Staged) -> range:
    return range((max(f.last_seq for f in staged.rejected_files) >> (BLOCK_BITS + ROW_BITS)) + 1)


def _read(spark: SparkSession, settings: Settings, staged: Staged) -> DataFrame:
    """Return the rejected rows in the attempt's folder: text, reason and rank."""
    paths = [exact(spark_path(settings.warehouse, file.path)) for file in staged.rejected_files]
    frame = spark.read.parquet(*paths)
    names = {stored_name(field): field["name"] for field in staged.fields or []}
    kept = [name for name in frame.columns if name not in (SEQ, TIME, MALFORMED)]
    user = [
        column.alias(names.get(name, name)) for name, column in zip(kept, quoted(kept), strict=True)
    ]
    row = as_json(F.struct(*user))
    reason, fault = F.lit(MISSING_KEY), [F.lit(None).cast("string").alias(n) for n in FAULT]
    if MALFORMED in frame.columns:
        why = F.col(MALFORMED)
        row = F.when(why.isNotNull(), why.getField(ROW)).otherwise(row)
        reason = F.when(why.isNotNull(), F.lit(BAD_ROW)).otherwise(reason)
        fault = [why.getField(name).alias(name) for name in FAULT]
    found = frame.select(row.alias("row"), reason.alias("reason"), *fault, SEQ)
    return found.coalesce(1).orderBy(SEQ)
