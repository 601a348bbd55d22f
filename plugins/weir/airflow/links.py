"""Links from a task to what Weir knows of it: the report of its run, its stream or group, and the
page of its job in YARN."""

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from weir.airflow.context import TaskKey


def _page(path: str, operator: object, **query: object) -> str:
    """Return the address of a page of Weir."""
    base = conf.get("api", "base_url", fallback="").rstrip("/")
    if conn_id := getattr(operator, "conn_id", ""):
        query["conn_id"] = conn_id
    return f"{base}/weir/{path}" + (f"?{urlencode(query)}" if query else "")


class ReportLink(BaseOperatorLink):
    """To the report of the task's run."""

    name = "Weir: report"

    def get_link(self, operator: object, *, ti_key: "TaskKey") -> str:
        """Return the address of the page with the report."""
        map_index = -1 if ti_key.map_index is None else ti_key.map_index
        run = {"run_id": ti_key.run_id, "task_id": ti_key.task_id, "map_index": map_index}
        return _page("run", operator, dag_id=ti_key.dag_id, **run)


class SubjectLink(BaseOperatorLink):
    """To the stream or the reader group that the task is about."""

    name = "Weir: stream or group"

    def get_link(self, operator: object, *, ti_key: object) -> str:
        """Return the address of its page; empty if the task is about neither."""
        if hasattr(operator, "stream"):
            return _page("stream", operator, name=operator.stream)
        arguments = getattr(operator, "shown_arguments", {})
        if isinstance(found := arguments.get("stream"), str) and found:
            return _page("stream", operator, name=found.strip())
        if isinstance(found := arguments.get("reader_group"), str) and found:
            return _page("group", operator, name=found.strip())
        return ""


class SparkLink(BaseOperatorLink):
    """To the application of the task's job in YARN, which has Spark's page."""

    name = "Spark"

    def get_link(self, operator: object, *, ti_key: object) -> str:
        """Return its address; empty if the job had none that outlives it."""
        hook = getattr(operator, "_hook", None)
        application = getattr(hook, "_yarn_application_id", None)
        address = getattr(operator, "yarn_address", "")
        return f"{address}/cluster/app/{application}" if application and address else ""


LINKS = (ReportLink(), SubjectLink(), SparkLink())
