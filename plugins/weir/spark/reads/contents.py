"""Verify the contents of files in Spark's tasks, each of which looks at files as a process of its
own does. Routing keys that are expressions are computed by Spark."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weir.errors import InvalidInput
from weir.installation.opened import Installation
from weir.model.key_space import STEPS
from weir.model.schema import SEQ, Field, stored_name, without_metadata
from weir.spark.base.calls import called_in_tasks, grouped
from weir.spark.base.exact import quoted
from weir.spark.base.routing import routing_steps
from weir.spark.base.session import active
from weir.spark.reads.data_files import FileConstants, scan_files
from weir.spark.reads.native import scanning_session
from weir.spark.users.expressions import check_expression, with_expression
from weir.verification.files import Reader, Seen, look_at
from weir.verification.recorded import Columns, Commit, File, Unit
from weir.verification.verify import Contents
from weir.warehouse.filesystem import filesystem, only_by_jvm

# What is damaged or gone was found before.
_SKIPPING = {"ignoreCorruptFiles": "true", "ignoreMissingFiles": "true"}
_FILE, _KEY = "_weir_file", "_weir_key"
_AT_ONCE = 16 << 20  # bytes of files that one task reads, about


def contents_by_spark(app: Installation) -> Contents:
    """Return what reads the contents of files in Spark's tasks, each as `look_at` does."""

    def look(columns: Columns, units: Sequence[Unit]) -> list[list[Seen]]:
        of = [(file, unit.commits) for unit in units for file in unit.files]
        seen = _looked_at(app, columns, of)
        unsure: dict[int, list[tuple[File, Seen]]] = defaultdict(list)
        for (file, _), one in zip(of, seen, strict=True):
            if not one.wrong and not one.keys and file.rows:
                unsure[file.schema_version].append((file, one))
        for version, some in unsure.items():
            _check_keys(app, columns, version, some)
        left = iter(seen)
        return [[next(left) for _ in unit.files] for unit in units]

    return look


def _looked_at(
    app: Installation, columns: Columns, files: Sequence[tuple[File, Sequence[Commit]]]
) -> list[Seen]:
    warehouse = app.settings.warehouse
    if only_by_jvm(warehouse):
        reader = Reader(*filesystem(warehouse), columns)
        return [look_at(reader, *one) for one in files]

    def look(one: tuple[File, Sequence[Commit]]) -> str:
        return json.dumps(asdict(look_at(Reader(*filesystem(warehouse), columns), *one)))

    groups = grouped(files, [file.bytes for file, _ in files], _AT_ONCE)
    return [_seen(text) for text in called_in_tasks(app.spark, look, groups)]


def _seen(text: str) -> Seen:
    found = json.loads(text)
    sums = found["sums"]
    if sums is not None:
        sums = {int(clock): total for clock, total in sums.items()}
    wrong = [(kind, words) for kind, words in found["wrong"]]
    return Seen(wrong, sums, found["keys"], found["file_hash"])


def _check_keys(
    app: Installation, columns: Columns, version: int, files: Sequence[tuple[File, Seen]]
) -> None:
    """Look whether the rows of files of one version are in the segments of their routing keys,
    which only Spark computes. Add to what was seen of them."""
    found = _places(app, columns, version, [file for file, _ in files])
    if found is None:
        return
    places = {row[_FILE]: row for row in found.collect()}
    for i, (file, seen) in enumerate(files):
        seen.keys = True
        begin, end = (math.ceil(end * STEPS) for end in (file.key_low, file.key_high))
        if i in places and (places[i]["first"] < begin or places[i]["last"] >= end):
            seen.wrong.append(("segment", "some of its rows have keys of another segment"))


def in_file(field: Field) -> Field:
    """Return a column as files have it: by its name there, and without a default."""
    kept = {key: value for key, value in field.items() if key not in ("stored", "default")}
    return {**kept, "name": stored_name(field)}


def _places(
    app: Installation, columns: Columns, version: int, files: Sequence[File]
) -> DataFrame | None:
    """Return per file, by its number, the range of the places of its rows in the key space; None if
    the routing key names a column that the files lack."""
    resolving = scanning_session(app.spark)
    fields = [in_file(field) for field in without_metadata(columns.versions[version])]
    with active(resolving):
        frame = scan_files(
            resolving, app.settings.warehouse, columns.stream_id, fields,
            [file.path for file in files], options=_SKIPPING,
        )  # fmt: skip
        constants = FileConstants([(file.path, file.first_seq) for file in files])
        known = {_FILE: constants.sql(range(len(files)))}
        rows = constants.numbered(frame)
        keyed = _keyed(resolving, columns, rows, [field["name"] for field in fields], known)
        if keyed is None:
            return None
        return keyed.groupBy(_FILE).agg(F.min(_KEY).alias("first"), F.max(_KEY).alias("last"))


def _keyed(
    resolving: SparkSession,
    columns: Columns,
    frame: DataFrame,
    stored: Sequence[str],
    known: Mapping[str, str],
) -> DataFrame | None:
    """Return what is `known` of the files of rows (SQL), with the routing positions of rows in
    steps (semantics 1.6); None if the routing key names a column that the files lack."""
    what = f"routing key of stream {columns.stream},"
    added = [F.expr(f"{sql} AS {name}") for name, sql in known.items()]
    rows = [F.col(SEQ), *added]
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
        return None
    steps = F.when(F.col(_KEY).isNull(), routing_steps(F.col(SEQ)))  # of rows without a key
    return keyed.withColumn(_KEY, steps.otherwise(routing_steps(F.col(_KEY))))
