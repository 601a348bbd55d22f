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


async def _served(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, in the API server. Every task loads this module, too."""
    from weir.airflow.pages import app

    await app(scope, receive, send)


class WeirPlugin(AirflowPlugin):
    """Names Weir among Airflow's plugins, with its macros, its references of deadlines, and what it
    serves below `/weir`."""

    name = "weir"
    macros: ClassVar[list[object]] = [since, until]
    deadline_references: ClassVar[list[object]] = [GroupReadDeadline, StreamCompleteDeadline]
    # Addresses without a slash before them lie below Airflow's own, wherever that is served.
    external_views: ClassVar[list[object]] = [
        {
            "name": "Weir", "href": "weir/streams", "destination": "nav", "url_route": "weir",
            "nav_top_level": True, "icon": "weir/assets/weir.svg",
        },
        {
            "name": "Weir", "href": "weir/run?dag_id={DAG_ID}&run_id={RUN_ID}",
            "destination": "dag_run", "url_route": "weir-run", "icon": "weir/assets/weir.svg",
        },
        {
            "name": "Weir",
            "href": "weir/run?dag_id={DAG_ID}&run_id={RUN_ID}&task_id={TASK_ID}"
            "&map_index={MAP_INDEX}",
            "destination": "task_instance", "url_route": "weir-task",
            "icon": "weir/assets/weir.svg",
        },
    ]  # fmt: skip
    fastapi_apps: ClassVar[list[object]] = [{"app": _served, "url_prefix": "/weir", "name": "weir"}]
