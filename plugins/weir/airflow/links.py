"""Links from a task to what Weir knows of it: the report of its run, its stream or group, and
Spark's pages."""

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from airflow.providers.common.compat.sdk import conf
from airflow.sdk import BaseOperatorLink

from weir.history.job_runs import record_pages
from weir.operations.action import Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


class LinkedJob(Job):
    """A job that says where its Spark shows what runs, if it does."""

    @property
    def spark(self) -> "SparkSession":
        """The session, as of each job."""
        opens = self._spark is None and self.settings.spark
        found = super().spark
        if opens and (pages := found.conf.get("spark.weir.pages", "")):
            self.pages = str(pages)
            self.database.transaction(lambda c: record_pages(c, self.run, self.pages))
            self.say(f"Spark shows what runs at {pages}")
        return found


class SparkLink(BaseOperatorLink):
    """To the pages of the Spark that the task shares, or of its application in YARN."""

    name = "Spark"

    def get_link(self, operator: object, *, ti_key: object) -> str:
        """Return its address; empty if the job had none that outlives it."""
        hook = getattr(operator, "_hook", None)
        application = getattr(hook, "_yarn_application_id", None)
        address = getattr(operator, "yarn_address", "")
        yarn = f"{address}/cluster/app/{application}" if application and address else ""
        return getattr(operator, "spark_pages", "") or yarn


LINKS = (ReportLink(), SubjectLink(), SparkLink())
