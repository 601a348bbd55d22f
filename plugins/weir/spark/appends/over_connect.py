"""Append over Spark Connect: the client plans and commits, and Spark's Python workers write."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

import pyarrow as pa
from pyspark.sql import DataFrame

from weir.arrow.rejected import staged_rejected
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.stage import Layout, Written
from weir.model.names import check_user_columns
from weir.spark.appends.left_over import delete_left_over
from weir.spark.appends.partitions import INSTEAD, PartitionWriter


def stage_over_connect(app: Installation, opened: list[Attempt], frame: DataFrame) -> list[Staged]:
    """Write a DataFrame for the one open attempt, as `Appender.stage_frame` does. Raises
    InvalidInput for a routing key or an event time that is no plain column, too."""
    check_user_columns(frame.columns)
    columns = frame.schema.jsonValue()["fields"]
    layout = Layout.of(app.settings.warehouse, opened[-1], columns, INSTEAD)
    layout.fit.announce(app.say)
    write = PartitionWriter(layout)

    def task(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        found = json.dumps(asdict(write(batches)))
        yield pa.RecordBatch.from_pydict({"written": pa.array([found], pa.string())})

    # Of each task, what the try wrote that Spark counts.
    answers = [
        json.loads(row.written) for row in frame.mapInArrow(task, "written string").collect()
    ]
    staged = layout.staged(
        Written(
            tuple(StagedFile(**file) for file in one["files"]),
            tuple(StagedFile(**file) for file in one["rejected"]), one["late"],
            one["erased"],
        )
        for one in answers
    )  # fmt: skip
    delete_left_over(app.settings.warehouse, staged)
    return staged_rejected(app, staged, opened)
