"""Read the batches of a reader group as DataFrames of Spark Connect.

Spark's Python workers read and write the files. The client, which this is, has the connection: it
plans, commits, and brings rows for tables there itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weir.arrow.engine import Pyarrow
from weir.consumers.engine import Copy
from weir.installation.opened import Installation
from weir.spark.base.session import is_connect
from weir.spark.consumers.engine import Spark


@dataclass(frozen=True)
class Connect(Spark):
    """DataFrames of the installation's session, which is one of Spark Connect: what a session in
    this process does with its JVM, pyarrow does here."""

    def copy(self, frame: DataFrame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a DataFrame to a COPY from here, as workers reach no database."""
        return Pyarrow(self.app).copy(frame.toArrow(), copy)

    def changed(self, names: Sequence[str], result: DataFrame, events: DataFrame) -> str:
        """Return the first of these columns of which the result has a value that none of the events
        has, or nothing."""
        known = events.select(*(F.col(name).alias(name) for name in names)).distinct().toArrow()
        mine = result.select(*names).distinct().toArrow()
        return Pyarrow(self.app).changed(names, mine, known)


def engine_for(app: Installation) -> Spark:
    """Return the engine of an installation's session."""
    return Connect(app) if is_connect(app.spark) else Spark(app)
