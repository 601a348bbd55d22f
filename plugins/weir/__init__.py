"""Weir: a durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.

Its packages have one order, in which each may import those below it (docs/architecture.md; kept by
tests/test_import_contract.py). Only `weir.spark` imports pyspark, and only `weir.airflow` airflow.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.arrow.append import append as append
    from weir.arrow.read import count as count
    from weir.arrow.read import read as read
    from weir.arrow.tail import tail as tail
    from weir.history.lineage import lineage as lineage


def __getattr__(name: str) -> Any:
    """`weir.append`, `read`, `count`, `tail` and `lineage`, loaded when first used."""
    if name == "append":
        from weir.arrow.append import append

        return append
    if name in ("read", "count"):
        from weir.arrow import read

        return getattr(read, name)
    if name == "lineage":
        from weir.history.lineage import lineage

        return lineage
    if name == "tail":
        from weir.arrow.tail import tail

        return tail
    raise AttributeError(f"module 'weir' has no attribute {name!r}")
