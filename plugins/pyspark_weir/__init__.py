"""The format `weir` of Spark. Spark 4.1 and later finds it by the name of this package, in SQL,
notebooks, Connect and pipelines, without a call of `weir.spark.register`."""

from weir.spark.reads.source import WeirSource as DefaultSource

__all__ = ["DefaultSource"]
