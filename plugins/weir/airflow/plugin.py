"""What Airflow's plugin manager loads of Weir: the wheel names it as an entry point, and
`plugins/weir_plugin.py` imports it in the source tree."""

from typing import Any, ClassVar

from airflow.plugins_manager import AirflowPlugin

from weir.airflow.offered import Offered
from weir.seams import hung

_ANNEXES = hung(Offered, "in_airflow")


async def _served(scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, in the API server. Every task loads this module, too."""
    from weir.airflow.pages import app

    await app(scope, receive, send)


class WeirPlugin(AirflowPlugin):
    """Names Weir among Airflow's plugins, with the macros and the references of deadlines of
    its annexes, and what it serves below `/weir`."""

    name = "weir"
    macros: ClassVar[list[object]] = [one for annex in _ANNEXES for one in annex.macros]
    deadline_references: ClassVar[list[object]] = [
        one for annex in _ANNEXES for one in annex.deadlines
    ]
    # Addresses without a slash before them lie below Airflow's own, wherever that is served.
    external_views: ClassVar[list[object]] = [
        {
            "name": "Weir", "href": "weir/now", "destination": "nav", "url_route": "weir",
            "nav_top_level": True, "icon": "weir/now.svg",
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
