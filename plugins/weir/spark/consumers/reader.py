"""A reader of a group for programs that have a Spark session."""

from typing import Unpack

from pyspark.sql import DataFrame, SparkSession

from weir.consumers.reader import Reader as AnyReader
from weir.consumers.reader_names import reader_name
from weir.installation.opened import Installation
from weir.reader_groups.batches.lifecycle import Function
from weir.reader_groups.batches.reading import Options, Reading
from weir.spark.base.session import check_session
from weir.spark.base.shared import shared
from weir.spark.consumers.connect_engine import engine_for


class Reader(AnyReader[DataFrame]):
    """Join a group, and return batch after batch, as DataFrames, up to the tail at the start.

        with Reader(spark, "late") as reader:
            for batch in reader:
                batch.commit({"stream:nyc/late": batch.events.where("dep_delay > 60")})

    `weir.open(spark=spark).reader("late")` is the same. `reader_id`: the same for all tries of a
    task, so that it gets its own batch back after a kill; different for each of several readers.
    `function`: what makes the results, for the record of each batch. `installation`: the one that
    the program has opened; otherwise that of jobs (`WEIR_CONFIG`, or `weir.toml`). `options`: how
    to read, as in `Options`.

    What a reader promises and raises: `weir.consumers.reader.Reader`.
    """

    def __init__(
        self,
        spark: SparkSession,
        group: str,
        *,
        reader_id: str = "",
        function: Function | None = None,
        installation: Installation | None = None,
        **options: Unpack[Options],
    ) -> None:
        check_session(spark)
        name = reader_id or reader_name()
        opened = installation or shared(spark, f"reader {name}")
        reading = Reading.of(opened.settings, **options)
        engine = engine_for(opened)
        super().__init__(opened, engine, group, reading, reader_id=name, function=function)
