"""What Airflow's plugin manager loads of Weir: the wheel names it as an entry point, and
`plugins/weir_plugin.py` imports it in the source tree."""

from datetime import datetime
from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from weir.airflow.deadlines import GroupReadDeadline, StreamCompleteDeadline
from weir.airflow.partitions import Partition


def since(key: str) -> datetime:
    """Return when the hour or day of a partition key begins: `macros.weir.since` in templates."""
    return Partition.of(key).since


def until(key: str) -> datetime:
    """Return when the hour or day of a partition key ends: `macros.weir.until` in templates."""
    return Partition.of(key).until


class WeirPlugin(AirflowPlugin):
    """Names Weir among Airflow's plugins, with its macros and its references of deadlines."""

    name = "weir"
    macros: ClassVar[list[Any]] = [since, until]
    deadline_references: ClassVar[list[Any]] = [GroupReadDeadline, StreamCompleteDeadline]
