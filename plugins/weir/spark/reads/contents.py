"""Read files with Spark to verify their contents: one job for the files of a schema's version.

Spark skips what is damaged, and counts what it has read. A file with other rows than recorded is
looked at once more with pyarrow, which says why.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.errors import InvalidInput
from weir.installation.opened import Installation
from weir.model.key_space import STEPS
from weir.model.schema import CLOCK, CLOCK_FIELD, SEQ, Field, stored_name, without_metadata
from weir.spark.base.exact import quoted
from weir.spark.base.routing import routing_steps
from weir.spark.base.row_hash import row_hash, sums_modulo
from weir.spark.base.session import active
from weir.spark.reads.data_files import FileConstants, scan_files
from weir.spark.reads.native import scanning_session
from weir.spark.users.expressions import check_expression, with_expression
from weir.verification.files import Reader, Seen, look_at
from weir.verification.recorded import Columns, Commit, File, Unit
from weir.verification.verify import Contents, by_pyarrow, wrong_digest
from weir.warehouse.filesystem import filesystem

# Its readers check the checksums of pages, and skip what is damaged or gone.
_SKIPPING = {
    "ignoreCorruptFiles": "true",
    "ignoreMissingFiles": "true",
    "parquet.page.verify-checksum.enabled": "true",
}
_FILE, _HASH, _KEY = "_weir_file", "_weir_hash", "_weir_key"


def contents_by_spark(app: Installation) -> Contents:
    """Return what reads the contents of files with Spark, after it has looked at their footers."""
    footers = by_pyarrow(app, contents=False)

    def look(columns: Columns, units: Sequence[Unit]) -> list[list[Seen]]:
        seen = footers(columns, units)
        by_version: dict[int, list[tuple[File, Seen, Sequence[Commit]]]] = defaultdict(list)
        for unit, of_unit in zip(units, seen, strict=True):
            for file, one in zip(unit.files, of_unit, strict=True):
                if not one.wrong:
                    by_version[file.schema_version].append((file, one, unit.commits))
        for version, some in by_version.items():
            _read(app, columns, version, some)
        reader = Reader(*filesystem(app.settings.warehouse), columns)
        for unit, of_unit in zip(units, seen, strict=True):
            if not any(one.wrong for one in of_unit) and wrong_digest(unit, of_unit):
                # Columns that were dropped or widened while the files were written, or damage.
                of_unit[:] = [look_at(reader, file, unit.commits)
                              for file in unit.files]  # fmt: skip
        return seen

    return look


def _read(
    app: Installation,
    columns: Columns,
    version: int,
    files: Sequence[tuple[File, Seen, Sequence[Commit]]],
) -> None:
    """Read files of one version, and add to what was seen of them."""
    rows: dict[int, list[Any]] = defaultdict(list)
    summed, keys = _summed(app, columns, version, [file for file, _, _ in files])
    clocks = CLOCK in summed.columns
    for row in summed.collect():
        rows[row[_FILE]].append(row)
    reader = Reader(*filesystem(app.settings.warehouse), columns)
    for i, (file, seen, commits) in enumerate(files):
        of_file = rows[i]
        if sum(row["rows"] for row in of_file) != file.rows:
            again = look_at(reader, file, commits)
            seen.wrong = again.wrong or [("unreadable", "Spark can't read all of its rows")]
            continue
        alone = next((one.clock for one in commits if one.end > file.start_offset), 0)
        seen.sums = defaultdict(int)
        for row in of_file:
            seen.sums[(row[CLOCK] if clocks else None) or alone] += row["sum"]
        seen.keys = keys
        if not of_file:  # all its events were erased
            continue
        low, high = min(row["low"] for row in of_file), max(row["high"] for row in of_file)
        if low < file.first_seq or high > file.last_seq:
            seen.wrong.append(("order", "its ranks are not those that were recorded"))
        if keys:
            begin, end = (math.ceil(end * STEPS) for end in (file.key_low, file.key_high))
            first, last = min(row["first"] for row in of_file), max(row["last"] for row in of_file)
            if first < begin or last >= end:
                seen.wrong.append(("segment", "some of its rows have keys of another segment"))


def in_file(field: Field) -> Field:
    """Return a column as files have it: by its name there, and without a default."""
    kept = {key: value for key, value in field.items() if key not in ("stored", "default")}
    return {**kept, "name": stored_name(field)}


def _summed(
    app: Installation, columns: Columns, version: int, files: Sequence[File]
) -> tuple[DataFrame, bool]:
    """Return per file, by its number, and per clock if one is compacted, how many rows it has, the
    sum of their hashes, and the ranges of their ranks and of their places in the key space; and
    whether these were looked at."""
    resolving = scanning_session(app.spark)
    fields = [in_file(field) for field in without_metadata(columns.versions[version])]
    compacted = any(file.compacted for file in files)
    scanned = [*fields, CLOCK_FIELD] if compacted else fields
    with active(resolving):
        frame = scan_files(
            resolving, app.settings.warehouse, columns.stream_id, scanned,
            [file.path for file in files], options=_SKIPPING,
        )  # fmt: skip
        constants = FileConstants([(file.path, file.first_seq) for file in files])
        # All else that is known of a file is compared with what was found in it, not row by row.
        known = {_FILE: constants.sql(range(len(files)))}
        if compacted:
            known[CLOCK] = CLOCK
        frame = constants.numbered(frame).withColumn(_HASH, row_hash(fields))
        frame, keys = _keyed(resolving, columns, frame, [f["name"] for f in fields], known)
        (total,) = sums_modulo(resolving._jvm, [F.col(_HASH)])
        places = [F.min(_KEY).alias("first"), F.max(_KEY).alias("last")] if keys else []
        sums = frame.groupBy(*known).agg(
            F.count(F.lit(1)).alias("rows"), total.alias("sum"),
            F.min(SEQ).alias("low"), F.max(SEQ).alias("high"), *places,
        )  # fmt: skip
        return sums, keys


def _keyed(
    resolving: SparkSession,
    columns: Columns,
    frame: DataFrame,
    stored: Sequence[str],
    known: Mapping[str, str],
) -> tuple[DataFrame, bool]:
    """Return the ranks and hashes of rows and what is `known` of their files (SQL), with their
    routing positions in steps (semantics 1.6); and whether they have these: not if the routing key
    names a column that the files lack."""
    what = f"routing key of stream {columns.stream},"
    added = [F.expr(f"{sql} AS {name}") for name, sql in known.items()]
    rows = [F.col(SEQ), F.col(_HASH), *added]
    try:
        key = check_expression(columns.routing_key, what, resolving)
        used = {name.lower() for name in key.columns}
        named = [
            quoted([stored_name(field)])[0].alias(field["name"])
            for field in columns.fields
            if stored_name(field) in stored and field["name"].lower() in used
        ]
        keyed = with_expression(frame.select(*named, *rows), key, _KEY, what, resolving)
    except InvalidInput:
        return frame.select(*rows), False
    steps = F.when(F.col(_KEY).isNull(), routing_steps(F.col(SEQ)))  # of rows without a key
    return keyed.withColumn(_KEY, steps.otherwise(routing_steps(F.col(_KEY)))), True
