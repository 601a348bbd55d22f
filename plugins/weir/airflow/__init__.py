"""Weir in Airflow: operators, sensors, forms, assets, readers as mapped tasks, and OpenLineage.

    from weir.airflow import AppendOperator, stream_asset

Imports no pyspark. What DAG files use is loaded when it is first used, also what annexes offer here
(`weir.airflow.offered`).
"""

import importlib
from typing import TYPE_CHECKING, Any

from weir.front_ends import operator_name as operator_name

if TYPE_CHECKING:
    from weir.airflow.actions import *  # noqa: F403
    from weir.airflow.assets import stream_asset as stream_asset
    from weir.airflow.connection import WeirHook as WeirHook
    from weir.airflow.dag_functions import weir_process as weir_process
    from weir.airflow.decorators import weir_append as weir_append
    from weir.airflow.queries import AppendQueryOperator as AppendQueryOperator
    from weir.airflow.sensors import GroupSensor as GroupSensor
    from weir.airflow.sensors import StoreSensor as StoreSensor
    from weir.airflow.sensors import StreamSensor as StreamSensor

_OFFERED = {
    "AppendQueryOperator": "weir.airflow.queries",
    "WeirHook": "weir.airflow.connection",
    "stream_asset": "weir.airflow.assets",
    "weir_append": "weir.airflow.decorators",
    "weir_process": "weir.airflow.dag_functions",
    **dict.fromkeys(("GroupSensor", "StoreSensor", "StreamSensor"), "weir.airflow.sensors"),
}


def __getattr__(name: str) -> Any:
    """Return what DAG files use: see `__dir__`."""
    where = _OFFERED.get(name) or ("weir.airflow.actions" if name.endswith("Operator") else None)
    found = where and getattr(importlib.import_module(where), name, None)
    if not found and not name.startswith("_") and (where := _of_annexes().get(name)):
        found = getattr(importlib.import_module(where), name)
    if not found:
        raise AttributeError(f"module 'weir.airflow' has no attribute {name!r}")
    return found


def _of_annexes() -> dict[str, str]:
    from weir.airflow.offered import Offered
    from weir.seams import hung

    return {n: one for annex in hung(Offered, "in_airflow") for n, one in annex.names.items()}


def __dir__() -> list[str]:
    from weir.operations.jobs import ACTIONS

    return sorted([*_OFFERED, *_of_annexes(), *map(operator_name, ACTIONS)])
