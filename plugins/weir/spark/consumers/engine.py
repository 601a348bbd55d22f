"""Read the batches of a reader group as DataFrames of Spark."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.engine import Adjuncts, Copy
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices
from weir.errors import InvalidInput, WeirError
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.folder_files import Folder, FolderFile
from weir.model.schema import PLACES, Field
from weir.reader_groups.outputs.tables import ORDER
from weir.spark.adjuncts.build import build_version
from weir.spark.adjuncts.manager import SparkAdjuncts
from weir.spark.appends.rejected import failed_events
from weir.spark.appends.stage import stage
from weir.spark.base.progress import watched
from weir.spark.base.session import is_connect
from weir.spark.base.stored_columns import as_in_files
from weir.spark.consumers.parquet_output import write_folder
from weir.spark.consumers.table_output import copy_rows
from weir.spark.failures import causes
from weir.spark.failures.lost_files import of_warehouse, saying_why
from weir.spark.reads.frames import frame_of, merged_frame
from weir.spark.reads.kept_columns import is_kept


@dataclass(frozen=True)
class Spark:
    """DataFrames of the installation's session."""

    app: Installation

    def begin(self) -> None:
        """Let errors of the function have their whole traceback; the session is the job's."""
        for key, value in causes.WHOLE_TRACEBACKS.items():
            self.app.spark.conf.set(key, value)

    def frame(self, rows: object) -> DataFrame | None:
        """Return a DataFrame; None for what is none. Raises InvalidInput for one that is of Spark
        Connect while the reader's session is not, or the other way round."""
        if not isinstance(rows, DataFrame):
            return None
        if is_connect(rows) != is_connect(self.app.spark):
            raise InvalidInput(
                "frame_unsupported",
                f"the rows are a {type(rows).__module__}.{type(rows).__name__}, but the session of "
                f"this reader is a {type(self.app.spark).__module__}.SparkSession; write "
                "DataFrames of that session.",
            )
        return rows

    def is_nothing(self, frame: DataFrame) -> bool:
        """Return False: a DataFrame has its columns whatever its rows are."""
        return False

    def columns(self, frame: DataFrame) -> list[Field]:
        """Return the columns of a DataFrame in Spark's JSON form."""
        fields: list[Field] = frame.schema.jsonValue()["fields"]
        return fields

    def without(self, frame: DataFrame, names: Collection[str]) -> DataFrame:
        """Return a DataFrame without these columns."""
        return frame.drop(*names)

    def kept(self, frame: DataFrame) -> DataFrame:
        """Return a DataFrame that is computed once, until `release`."""
        return frame.persist()

    def release(self, frames: Sequence[DataFrame]) -> None:
        """Forget what was kept."""
        for frame in frames:
            frame.unpersist()

    def read(self, read: Slices, order: str) -> DataFrame:
        """Return the events of a stream with their places."""
        return frame_of(self.app.spark, self.app.settings, read, order=order)

    def merged(self, streams: Sequence[Slices], columns: Sequence[str] | None) -> DataFrame:
        """Return the events of several streams in write order, with `_stream` and their places."""
        return merged_frame(self.app.spark, self.app.settings, streams, columns)

    def adjuncts(
        self, pins: Mapping[str, Pin], manager: AdjunctStoreManager
    ) -> Adjuncts[DataFrame]:
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
        with watched(app.spark, f"writing {folder.path.partition('/group=')[0]}", app.say, where):
            return write_folder(frame, folder)

    def copy(self, frame: DataFrame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a DataFrame to a COPY, in one transaction for each task."""
        with watched(self.app.spark, f"writing {copy.table}", self.app.say):
            return copy_rows(frame, copy, self.app.settings)

    def ordered(self, frame: DataFrame) -> DataFrame:
        """Return a DataFrame with two more columns that say the order of its rows (`ORDER`)."""
        places = ("0L", "monotonically_increasing_id()")
        if set(PLACES) <= set(frame.columns):
            places = ("cast(_clock AS long)", "cast(_offset AS long)")
        more = (f"{sql} AS {name}" for sql, name in zip(places, ORDER, strict=True))
        return frame.selectExpr("*", *more)

    def failed_events(
        self, frame: DataFrame, group: str, reason: str, fields: Sequence[Field]
    ) -> DataFrame:
        """Return events on which a group failed as rows of `<stream>.rejected`."""
        return failed_events(as_in_files(frame, fields), group, reason)

    def changed(self, names: Sequence[str], result: DataFrame, events: DataFrame) -> str:
        """Return the first of these columns that Spark does not know to be that of the events, or
        nothing."""
        return next((name for name in names if not is_kept(name, result, events)), "")

    def explaining(self) -> AbstractContextManager[None]:
        """Return a block that says why files of the warehouse can't be read or written."""
        return saying_why(self.app.database, self.app.settings)

    def of_storage(self, error: Exception) -> WeirError | None:
        """Return what it means that a function failed at a file of the warehouse, or at a full
        disk; None if it did not."""
        return of_warehouse(self.app.database, self.app.settings, error)

    def caused_by_events(self, error: Exception) -> bool:
        """Return whether a smaller batch may succeed."""
        return causes.caused_by_events(error)

    def is_programs(self, error: Exception) -> bool:
        """Return whether an error is a mistake in the program's text, here or on executors."""
        return causes.is_programs(error)

    def sentence(self, error: Exception) -> str:
        """Return what went wrong, in one line."""
        return causes.sentence(error)
