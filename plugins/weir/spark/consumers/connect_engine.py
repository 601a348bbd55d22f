"""Read the batches of a reader group as DataFrames of Spark Connect.

Spark's Python workers read and write the files. The client, which this is, has the connection: it
plans, commits, and brings rows for tables there itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as F

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.arrow.engine import Pyarrow
from weir.consumers.engine import Adjuncts, Copy
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices
from weir.errors import InvalidInput
from weir.kernel.attempt import Attempt, Staged
from weir.model.schema import PLACES, Field
from weir.reader_groups.outputs.tables import ORDER
from weir.spark.appends.stage import stage
from weir.spark.base.session import is_connect
from weir.spark.consumers.frames import Frames
from weir.spark.reads.over_connect import frame_over_connect, merged_over_connect


@dataclass(frozen=True)
class Connect(Frames):
    """DataFrames of the installation's session, which is one of Spark Connect."""

    def begin(self) -> None:
        """Do nothing: the session is the program's."""

    def frame(self, rows: Any) -> DataFrame | None:
        """Return a DataFrame of Spark Connect; None for what is none. Raises InvalidInput for one
        of a session in this process."""
        if not type(rows).__module__.startswith("pyspark."):
            return None
        if not is_connect(rows):
            raise InvalidInput(
                "frame_unsupported",
                f"the rows are a {type(rows).__module__}.{type(rows).__name__}, but this reader "
                "has a session of Spark Connect; write DataFrames of that session.",
            )
        frame: DataFrame = rows
        return frame

    def read(self, read: Slices, order: str) -> DataFrame:
        """Return the events of a stream with their places."""
        return frame_over_connect(self.app.spark, self.app.settings, read, order=order)

    def merged(self, streams: Sequence[Slices], columns: Sequence[str] | None) -> DataFrame:
        """Return the events of several streams in write order, with `_stream` and their places."""
        return merged_over_connect(self.app.spark, self.app.settings, streams, columns)

    def adjuncts(self, pins: Mapping[str, Pin], manager: Any) -> "NoStores":
        """Return the stores of a batch, of which none can be read."""
        return NoStores(pins)

    def build_version(self, store: str, cut: Cut, clock: int) -> AdjunctVersion:
        """Refuse to build a version of a store. Raises InvalidInput."""
        raise _no_store(store)

    def stage(self, opened: list[Attempt], frame: DataFrame) -> list[Staged]:
        """Write a DataFrame for the one open attempt; add the attempt of rejected rows."""
        return stage(self.app, opened, frame)

    def copy(self, frame: DataFrame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a DataFrame to a COPY from here, as workers reach no database."""
        return Pyarrow(self.app).copy(frame.toArrow(), copy)

    def ordered(self, frame: DataFrame) -> DataFrame:
        """Return a DataFrame with two more columns that say the order of its rows (`ORDER`)."""
        clock, place = F.lit(0).cast("long"), F.monotonically_increasing_id()
        if set(PLACES) <= set(frame.columns):
            clock, place = F.col("_clock").cast("long"), F.col("_offset").cast("long")
        return frame.withColumns(dict(zip(ORDER, (clock, place), strict=True)))

    def failed_events(
        self, frame: DataFrame, group: str, reason: str, fields: Sequence[Field]
    ) -> DataFrame:
        """Return events on which a group failed as rows of `<stream>.rejected`."""
        rows = Pyarrow(self.app).failed_events(frame.toArrow(), group, reason, fields)
        return self.app.spark.createDataFrame(rows)

    def changed(self, names: Sequence[str], result: DataFrame, events: DataFrame) -> str:
        """Return the first of these columns of which the result has a value that none of the events
        has, or nothing."""
        known = events.select(*(F.col(name).alias(name) for name in names)).distinct().toArrow()
        mine = result.select(*names).distinct().toArrow()
        return Pyarrow(self.app).changed(names, mine, known)


@dataclass(frozen=True, eq=False)
class NoStores(Adjuncts[DataFrame]):
    """The stores of a batch over Spark Connect, which does not read them."""

    pins: Mapping[str, Pin]

    def __getitem__(self, name: str) -> NoReturn:
        self._pin(name)
        raise _no_store(name)

    def enrich(self, events: DataFrame, name: str, on: Any, *given: Any, **more: Any) -> NoReturn:
        """Refuse to join a store. Raises InvalidInput."""
        self._pin(name)
        raise _no_store(name)


def _no_store(name: str) -> InvalidInput:
    return InvalidInput(
        "adjunct_needs_spark",
        f"adjunct store {name} can't be read or built over Spark Connect; use engine='pyarrow', or "
        "start the program with spark-submit.",
    )
