"""Streams as Spark DataFrames: append, read, consume. Imports no airflow.

Programs of your own need `from weir.spark import Reader, Appender, output, read, register`.

From these proposals (docs/semantics.md says where Weir differs):
- PDP-24, an append that commits after a scale:
  https://github.com/pravega/pravega/wiki/PDP-24:-Rolling-Transaction
- PDP-28, reads in write order:
  https://github.com/pravega/pravega/wiki/PDP-28-(Cross-Routing-Key-Ordering)
"""

import importlib
from typing import TYPE_CHECKING, Any

from weir.installation.extras import naming_extras

if TYPE_CHECKING:
    from weir.consumers.adjuncts import AdjunctStoreManager as AdjunctStoreManager
    from weir.consumers.open_batch import OpenBatch as OpenBatch
    from weir.spark.appends.appender import Appender as Appender
    from weir.spark.consumers.parquet_output import output as output
    from weir.spark.consumers.reader import Reader as Reader
    from weir.spark.reads.source import register as register
    from weir.spark.reads.streams import read as read


# What programs use, and where it is. It is loaded when first used, because jobs that move no data
# do not need it.
_OFFERED = {
    "AdjunctStoreManager": "weir.consumers.adjuncts",
    "Appender": "weir.spark.appends.appender",
    "OpenBatch": "weir.consumers.open_batch",
    "Reader": "weir.spark.consumers.reader",
    "output": "weir.spark.consumers.parquet_output",
    "read": "weir.spark.reads.streams",
    "register": "weir.spark.reads.source",
}
__all__ = sorted(_OFFERED)


def __getattr__(name: str) -> Any:
    """Return what programs use; see `__all__`. Raises InvalidInput if pyspark is not installed."""
    if name not in _OFFERED:
        raise AttributeError(f"module 'weir.spark' has no attribute {name!r}")
    with naming_extras():
        return getattr(importlib.import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    return __all__
