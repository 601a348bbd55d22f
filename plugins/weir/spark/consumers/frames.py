"""What DataFrames are for a consumer, whether their JVM is in this process or behind Connect."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from pyspark.sql import DataFrame

from weir.errors import WeirError
from weir.installation.opened import Installation
from weir.kernel.folder_files import Folder, FolderFile
from weir.model.schema import Field
from weir.spark.consumers.parquet_output import write_folder
from weir.spark.failures import causes
from weir.spark.failures.lost_files import of_warehouse, saying_why


@dataclass(frozen=True)
class Frames:
    """The part of an engine that all sessions of Spark have in common."""

    app: Installation

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

    def write_folder(self, folder: Folder, frame: DataFrame) -> Sequence[FolderFile]:
        """Write the rows of a DataFrame below a folder, and return the files that are there."""
        return write_folder(frame, folder)

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
