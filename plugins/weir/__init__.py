"""Weir: a durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.

Its packages have one order, in which each may import those below it (docs/architecture.md; kept by
tests/test_import_contract.py). Only `weir.airflow` and annexes above it import airflow.
Only `weir.spark` works with pyspark; `weir.warehouse.hadoop` imports it when it needs it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weir.consumers.user_functions import declares as declares
    from weir.errors import TruncatedWarning as TruncatedWarning
    from weir.programs.opening import open as open
    from weir.programs.store import StreamStore as StreamStore
    from weir.settings import Settings as Settings

# What programs use, and where it is. It is loaded when first used, because jobs do not need it.
_OFFERED = {
    "Settings": "weir.settings",
    "StreamStore": "weir.programs.store",
    "TruncatedWarning": "weir.errors",
    "declares": "weir.consumers.user_functions",
    "open": "weir.programs.opening",
}
__version__ = "0.1.0"
__all__ = sorted([*_OFFERED, "__version__"])


def __getattr__(name: str) -> Any:
    """Return what programs use; see `__all__`."""
    if name not in _OFFERED:
        raise AttributeError(f"module 'weir' has no attribute {name!r}")
    return getattr(importlib.import_module(_OFFERED[name]), name)


def __dir__() -> list[str]:
    return __all__
