"""The engine that a reader computes with, by its name."""

from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from weir.arrow.engine import Pyarrow
from weir.consumers.engine import Engine
from weir.installation.extras import naming_extras
from weir.installation.opened import Installation, remote_spark

CONNECT = "spark over Connect"  # of an installation that was opened with such a session


def engine_of(app: Installation, name: str) -> tuple[Engine[Any], bool]:
    """Return the engine `spark` or `pyarrow`, and whether it holds batches in memory. `auto`: Spark
    where pyspark is installed. Its session is started with the first batch. Raises InvalidInput if
    pyspark is not installed."""
    if name == "auto":
        name = "pyarrow"
        with suppress(ModuleNotFoundError):
            name = "spark" if find_spec("pyspark") else name
    if name == "pyarrow":
        return Pyarrow(app), True
    if name == CONNECT or (name == "spark" and remote_spark(app.settings)):
        with naming_extras():
            from weir.spark.consumers.connect_engine import Connect

        return Connect(app), False
    with naming_extras():
        from weir.spark.consumers.engine import Spark

    return Spark(app), False
