"""`AppendQueryOperator`: what a query of Spark gives is appended to a stream.

SQL of Spark reads whatever the worker may read, so it is code: the text stands in the DAG file and
is no template and no argument of a form."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weir.airflow.assets import without_streams
from weir.airflow.items import item_of, with_item
from weir.airflow.links import LinkedJob
from weir.airflow.operators import WeirJobOperator
from weir.airflow.tasks import batch_of, failing, recorded, run_of, state_until
from weir.database.connection import Database
from weir.errors import InvalidInput

if TYPE_CHECKING:
    from weir.airflow.context import Context


class AppendQueryOperator(WeirJobOperator):
    """Append what a query of Spark gives to a stream, in one transaction.

        AppendQueryOperator(
            task_id="large", stream="shop/large", parameters={"day": "{{ ds }}"},
            query="SELECT * FROM parquet.`/lake/orders` WHERE day = :day",
        )

    :param stream: the stream, as scope/stream.
    :param query: a SELECT of Spark, over tables of the session or files. It is code, so it is no
        template, and is in the DAG file as it is.
    :param parameters: the values of `:name` in the query, which Spark binds.
    :param complete_until: the event time before which this task has appended everything, with it.
    :param batch_id: what tells its appends apart, in place of its run and its item.
    :param conn_id: a connection of type Weir, which names the installation. Default: that of
        WEIR_CONFIG or `weir.toml`.
    :param spark_conn_id: the connection of Spark, for a session in the worker, in the deploy mode
        client.

    `stream`, `parameters`, `complete_until` and `batch_id` are templated. The task returns the
    report. All its tries and what is cleared append once, even if the query then gives other rows;
    of a mapped task once for each item, whatever its index.
    """

    custom_operator_name = "AppendQueryOperator"
    recorded_as = "append"

    def __init__(
        self,
        *,
        stream: str,
        query: str,
        parameters: Mapping[str, object] | None = None,
        complete_until: str = "",
        batch_id: str = "",
        conn_id: str = "",
        spark_conn_id: str = "",
        **kwargs: Any,
    ) -> None:
        if not isinstance(query, str) or any(one in query for one in ("{{", "{%", "{#")):
            raise InvalidInput(
                "expression_invalid",
                "query is code, so it is neither a template nor what another task returns; write "
                ":name in it, and give the value in parameters.",
            )
        arguments = {
            "stream": stream, "parameters": parameters or {}, "complete_until": complete_until,
            "batch_id": batch_id,
        }  # fmt: skip
        kwargs.setdefault("name", "weir append")
        super().__init__(
            job="ingest", arguments=arguments, engine="spark", conn_id=conn_id,
            spark_conn_id=spark_conn_id, **kwargs,
        )  # fmt: skip
        self.query = query

    def _execute(self, context: "Context") -> dict[str, object]:
        """Run the query, append its rows, and return the report."""

        with failing():
            item = item_of(self, context)
            run = self._run = with_item(run_of(context["ti"]), item)
        given = self.arguments or {}
        self.shown_arguments = given
        shown = {name: str(value) for name, value in given["parameters"].items()}
        with (
            failing(),
            self._session_here(settings := self._settings()),
            Database.of(settings) as database,
            recorded(
                self, database, run, given | {"query": self.query, "parameters": shown}, item
            ) as report,
            self._in_this_process(),
        ):
            from weir.programs.appending import append_query  # pyarrow, which no DAG file needs

            job = LinkedJob("append", run, settings, database, log=self.log.info)
            try:
                report |= append_query(
                    job.installation, given["stream"], self.query, given["parameters"],
                    **batch_of(run, given["batch_id"]),
                    complete_until=(item is None and given["complete_until"]) or None,
                ).report() | ({"spark_pages": job.pages} if job.pages else {})  # fmt: skip
            finally:
                job.end_spark()
                self.spark_pages = job.pages
            if item is not None:
                state_until(database, given["stream"], run, given["complete_until"])
        self.outlets = without_streams(self.outlets)
        return report
