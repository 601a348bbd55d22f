"""Read the batches of a reader group as DataFrames of Spark."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.consumers.engine import Copy
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.folder_files import Folder, FolderFile
from weir.model.schema import PLACES, Field
from weir.reader_groups.outputs.tables import ORDER
from weir.spark.adjuncts.build import build_version
from weir.spark.adjuncts.manager import SparkAdjuncts
from weir.spark.appends.rejected import failed_events
from weir.spark.appends.stage import stage
from weir.spark.base.progress import watched
from weir.spark.base.session import check_classic, is_connect
from weir.spark.base.stored_columns import as_in_files
from weir.spark.consumers.frames import Frames
from weir.spark.consumers.table_output import copy_rows
from weir.spark.failures import causes
from weir.spark.reads.kept_columns import is_kept
from weir.spark.reads.merged import merged_frame
from weir.spark.reads.native import frame_of


@dataclass(frozen=True)
class Spark(Frames):
    """DataFrames of the installation's session."""

    def begin(self) -> None:
        """Let errors of the function have their whole traceback; the session is the job's."""
        for key, value in causes.WHOLE_TRACEBACKS.items():
            self.app.spark.conf.set(key, value)

    def frame(self, rows: Any) -> DataFrame | None:
        """Return a DataFrame of a session in this process; None for what is none. Raises
        InvalidInput for one of Spark Connect."""
        if not type(rows).__module__.startswith("pyspark."):
            return None
        if is_connect(rows):
            check_classic(rows.sparkSession)
        frame: DataFrame = rows
        return frame

    def read(self, read: Slices, order: str) -> DataFrame:
        """Return the events of a stream with their places."""
        app = self.app
        return frame_of(
            app.spark, app.settings.warehouse, read.stream_id, read.slices, read.fields,
            order=order,
        )  # fmt: skip

    def merged(self, streams: Sequence[Slices], columns: Sequence[str] | None) -> DataFrame:
        """Return the events of several streams in write order, with `_stream` and their places."""
        return merged_frame(self.app.spark, self.app.settings.warehouse, streams, columns)

    def adjuncts(self, pins: Mapping[str, Pin], manager: Any) -> SparkAdjuncts:
        """Return the tables of a batch's stores."""
        return SparkAdjuncts(self.app, pins, manager)

    def build_version(self, store: str, cut: Cut, clock: int) -> AdjunctVersion:
        """Build a version of a store that is complete to a cut."""
        return build_version(self.app, store, cut=cut, clock=clock)

    def stage(self, opened: list[Attempt], frame: DataFrame) -> list[Staged]:
        """Write a DataFrame for the one open attempt; add the attempt of rejected rows."""
        return stage(self.app, opened, frame)

    def write_folder(self, folder: Folder, frame: DataFrame) -> Sequence[FolderFile]:
        """Write the rows of a DataFrame below a folder, and return the files that are there."""
        app, where = self.app, (folder.root, folder.path)
        output = folder.path.partition("/group=")[0]
        with watched(app.spark, f"writing {output}", app.say, where):
            return super().write_folder(folder, frame)

    def copy(self, frame: DataFrame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a DataFrame to a COPY, in one transaction for each task."""
        with watched(self.app.spark, f"writing {copy.table}", self.app.say):
            return copy_rows(frame, copy, self.app.settings)

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
        return failed_events(as_in_files(frame, fields), group, reason)

    def changed(self, names: Sequence[str], result: DataFrame, events: DataFrame) -> str:
        """Return the first of these columns that Spark does not know to be that of the events, or
        nothing."""
        return next((name for name in names if not is_kept(name, result, events)), "")
