"""Weir: a durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.

Import contract (kept by tests/test_import_contract.py): this package imports neither airflow nor
pyspark; `weir.spark` may import pyspark, `weir.airflow` may import airflow, and nothing else may.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.tables import append as append
    from weir.tables import read as read


def __getattr__(name: str) -> Any:
    """`weir.append` and `weir.read`, loaded when they are first used: jobs have no need of them."""
    if name in ("append", "read"):
        from weir import tables

        return getattr(tables, name)
    raise AttributeError(f"module 'weir' has no attribute {name!r}")
