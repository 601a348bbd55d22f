"""`@task.weir_append`: what a function returns is appended to a stream, in the worker."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import (
    DecoratedOperator,
    TaskDecorator,
    task_decorator_factory,
)
from airflow.providers.standard.operators.python import PythonOperator

from weir.airflow.assets import with_stream, without_streams
from weir.airflow.connection import settings_of
from weir.airflow.items import item_of, with_item
from weir.airflow.links import LINKS
from weir.airflow.tasks import (
    answering,
    batch_of,
    failing,
    recorded,
    run_of,
    state_until,
    with_retries,
)

if TYPE_CHECKING:
    from weir.airflow.context import Context, TaskInstance
    from weir.database.connection import Database


class _AppendOperator(DecoratedOperator, PythonOperator):
    """Append what a function returns."""

    custom_operator_name = "@task.weir_append"
    operator_extra_links = LINKS[:2]
    template_fields: Sequence[str] = (
        "op_args", "op_kwargs", "templates_dict", "stream", "complete_until", "batch_id",
        "conn_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        python_callable: Callable[..., object],
        stream: str,
        complete_until: str = "",
        batch_id: str = "",
        conn_id: str = "",
        op_args: Sequence[object] | None = None,
        op_kwargs: Mapping[str, object] | None = None,
        **kwargs: object,
    ) -> None:
        kwargs["outlets"] = with_stream(kwargs.get("outlets"), {"stream": stream})
        kwargs["multiple_outputs"] = False  # a report is one
        called = {"python_callable": python_callable, "op_args": op_args, "op_kwargs": op_kwargs}
        super().__init__(
            kwargs_to_upstream=called, show_return_value_in_logs=False, **called,
            **with_retries(kwargs),
        )  # fmt: skip
        self.stream = stream
        self.complete_until = complete_until
        self.batch_id = batch_id
        self.conn_id = conn_id

    def execute(self, context: "Context") -> dict[str, object]:
        """Call the function, append what it returns, and return the report."""
        arguments: dict[str, object] = {
            "stream": self.stream, "complete_until": self.complete_until, "batch_id": self.batch_id,
        }  # fmt: skip
        with answering(self, context, "append", arguments):
            return self._append(context, arguments)

    def _append(self, context: "Context", arguments: dict[str, object]) -> dict[str, object]:
        from weir.database.connection import Database
        from weir.installation.opened import Installation
        from weir.programs.appending import append_rows

        with failing():
            item = item_of(self, context)
            run = with_item(run_of(context["ti"]), item)
        rows = super().execute(context)
        if inspect.isgenerator(rows):
            rows = list(rows)
        with failing(), Database.of(settings := settings_of(self.conn_id)) as database:
            app = Installation(settings, database, str(run), self.log.info)
            with recorded(self, database, run, arguments, item) as report:
                empty = rows is None or (isinstance(rows, (list, tuple)) and not rows)
                if empty:
                    report |= {"stream": self.stream, "events": 0}
                else:
                    stated = (item is None and self.complete_until) or None
                    report |= append_rows(
                        app, self.stream, rows, **batch_of(run, self.batch_id),
                        complete_until=stated,
                    ).report()  # fmt: skip
                if empty or item is not None:
                    state_until(database, self.stream, run, self.complete_until)
                if run.map_index == 0 and self.complete_until:
                    self._state_unmapped(database, context["ti"])
        self.outlets: list[object] = without_streams(self.outlets)
        return report

    def _state_unmapped(self, database: "Database", ti: "TaskInstance") -> None:
        """State for the writers of earlier runs that mapped more what this index has stated: this
        run has nothing to append for them, and they must not hold the stream back."""
        from weir.controller.completeness import state_unmapped
        from weir.model.names import stream_name

        name, task = stream_name(self.stream), f"{ti.dag_id}/{ti.task_id}"
        count = ti.get_ti_count(dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id])
        for writer in state_unmapped(database, name, task, count, self.complete_until):
            self.log.info(
                "this run maps %s, so writer %s of an earlier run has nothing to append before %s",
                count, writer, self.complete_until,
            )  # fmt: skip


def weir_append(
    python_callable: Callable[..., object] | None = None,
    *,
    stream: str,
    complete_until: str = "",
    batch_id: str = "",
    conn_id: str = "",
    **kwargs: object,
) -> TaskDecorator:
    """Append what a function returns to a stream, in one transaction, without a JVM.

        @task.weir_append(stream="shop/orders")
        def orders(ds=None):
            return [{"customer": "ann", "amount": 3}]

    The function returns what `store.append` takes: dictionaries, or a table or frame of pyarrow,
    pandas, Polars or Spark; a generator of dictionaries; None or nothing for no rows. The task
    returns the report. All tries of a task and what is cleared append once, even if the function
    then returns other rows; a mapped task appends each item of its list once, whatever its index.
    `batch_id`: what tells appends of this task apart, in place of the run and the item.
    `complete_until`: the event time before which this task has appended everything, which it states
    also if there are no rows; index 0 of a mapped task states it for the indexes that an earlier
    run had and this one has not. `conn_id`: a connection of type Weir. These and `stream` are
    templated. `kwargs`: those of every task.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=_AppendOperator, stream=stream,
        complete_until=complete_until, batch_id=batch_id, conn_id=conn_id, **kwargs,
    )  # fmt: skip
