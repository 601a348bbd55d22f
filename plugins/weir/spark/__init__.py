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
    from weir.spark.adjuncts import AdjunctStoreManager as AdjunctStoreManager
    from weir.spark.append import Appender as Appender
    from weir.spark.open_batch import OpenBatch as OpenBatch
    from weir.spark.parquet_output import output as output
    from weir.spark.reader import Reader as Reader
    from weir.spark.source import register as register
    from weir.spark.stream_read import read as read


# What programs use, and where it is. It is loaded when first used, because jobs that move no data
# do not need it.
_OFFERED = {
    "AdjunctStoreManager": "weir.spark.adjuncts",
    "Appender": "weir.spark.append",
    "OpenBatch": "weir.spark.open_batch",
    "Reader": "weir.spark.reader",
    "output": "weir.spark.parquet_output",
    "read": "weir.spark.stream_read",
    "register": "weir.spark.source",
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
