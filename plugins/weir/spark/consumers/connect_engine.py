"""Read the batches of a reader group as DataFrames of Spark Connect.

Spark's Python workers read and write the files. The client, which this is, has the connection: it
plans, commits, and brings rows for tables there itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pyspark.sql import DataFrame
from pyspark.sql.connect import functions as F

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.arrow.engine import Pyarrow
from weir.consumers.engine import Adjuncts, Copy
from weir.controller.queries import Cut
from weir.errors import InvalidInput
from weir.model.schema import Field
from weir.spark.consumers.engine import Spark


@dataclass(frozen=True)
class Connect(Spark):
    """DataFrames of the installation's session, which is one of Spark Connect: what a session in
    this process does with its JVM, pyarrow does here, or nobody."""

    def adjuncts(self, pins: Mapping[str, Pin], manager: object) -> Adjuncts[DataFrame]:
        """Return the stores of a batch, of which none can be read."""
        return NoStores(pins)

    def build_version(self, store: str, cut: Cut, clock: int) -> AdjunctVersion:
        """Refuse to build a version of a store. Raises InvalidInput."""
        raise _no_store(store)

    def copy(self, frame: DataFrame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a DataFrame to a COPY from here, as workers reach no database."""
        return Pyarrow(self.app).copy(frame.toArrow(), copy)

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

    def enrich(
        self, events: DataFrame, name: str, on: object, *given: object, **more: object
    ) -> NoReturn:
        """Refuse to join a store. Raises InvalidInput."""
        self._pin(name)
        raise _no_store(name)


def _no_store(name: str) -> InvalidInput:
    return InvalidInput(
        "needs_spark",
        f"adjunct store {name} can't be read or built over Spark Connect; use engine='pyarrow', or "
        "start the program with spark-submit.",
    )
