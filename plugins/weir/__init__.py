"""Weir: a durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.

Its packages have one order, in which each may import those below it (docs/architecture.md; kept by
tests/test_import_contract.py). Only `weir.airflow` imports airflow. Only `weir.spark` and the jobs
work with pyspark; `weir.warehouse.hadoop` and `weir.terminal.look` import it when they need it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.arrow.append import append as append
    from weir.arrow.read import count as count
    from weir.arrow.read import read as read
    from weir.arrow.tail import tail as tail
    from weir.declarations.declared import declares as declares
    from weir.errors import TruncatedWarning as TruncatedWarning
    from weir.history.lineage import lineage as lineage
    from weir.operations.programs import checkpoint as checkpoint
    from weir.operations.programs import create_reader_group as create_reader_group


def __getattr__(name: str) -> Any:
    """Return what programs use: `weir.append`, `read`, `count`, `tail`, `lineage`,
    `create_reader_group`, `checkpoint` and `declares`. It is loaded when first used, because jobs
    do not need it."""
    if name == "append":
        from weir.arrow.append import append

        return append
    if name in ("read", "count"):
        from weir.arrow import read

        return getattr(read, name)
    if name == "declares":
        from weir.declarations.declared import declares

        return declares
    if name == "lineage":
        from weir.history.lineage import lineage

        return lineage
    if name in ("checkpoint", "create_reader_group"):
        from weir.operations import programs

        return getattr(programs, name)
    if name == "tail":
        from weir.arrow.tail import tail

        return tail
    if name == "TruncatedWarning":
        from weir.errors import TruncatedWarning

        return TruncatedWarning
    raise AttributeError(f"module 'weir' has no attribute {name!r}")
