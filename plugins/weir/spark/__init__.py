"""Streams as Spark DataFrames: append, read, consume. Imports no airflow.

Programs of your own need `from weir.spark import Reader, Appender, output, read, register`.

From these proposals (docs/semantics.md says where Weir differs):
- PDP-24, an append that commits after a scale:
  https://github.com/pravega/pravega/wiki/PDP-24:-Rolling-Transaction
- PDP-28, reads in write order:
  https://github.com/pravega/pravega/wiki/PDP-28-(Cross-Routing-Key-Ordering)
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.spark.adjuncts import AdjunctStoreManager as AdjunctStoreManager
    from weir.spark.append import Appender as Appender
    from weir.spark.open_batch import OpenBatch as OpenBatch
    from weir.spark.parquet_output import output as output
    from weir.spark.reader import Reader as Reader
    from weir.spark.source import register as register
    from weir.spark.stream_read import read as read


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, because jobs that move no data do not need it."""
    if name in ("Reader", "OpenBatch"):
        from weir.spark import reader

        return getattr(reader, name)
    if name == "AdjunctStoreManager":
        from weir.spark.adjuncts import AdjunctStoreManager

        return AdjunctStoreManager
    if name == "Appender":
        from weir.spark.append import Appender

        return Appender
    if name == "output":
        from weir.spark.parquet_output import output

        return output
    if name == "read":
        from weir.spark.stream_read import read

        return read
    if name == "register":
        from weir.spark.source import register

        return register
    raise AttributeError(f"module 'weir.spark' has no attribute {name!r}")
