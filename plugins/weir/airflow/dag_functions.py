"""`@task.weir_process`: a function of the DAG file is called with the batches of a reader group."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from airflow.providers.common.compat.sdk import (
    AirflowFailException,
    DecoratedOperator,
    TaskDecorator,
    task_decorator_factory,
)

from weir.airflow.connection import settings_of
from weir.airflow.operators import WeirJobOperator
from weir.airflow.tasks import failing
from weir.errors import InvalidInput
from weir.front_ends import RENAMED
from weir.operations.consumers import Process

if TYPE_CHECKING:
    from weir.airflow.context import Context


class ProcessOwnOperator(DecoratedOperator, WeirJobOperator):
    """Process a reader group with a function of the DAG file, in the worker."""

    custom_operator_name = "@task.weir_process"
    template_fields = (*WeirJobOperator.template_fields, "op_args", "op_kwargs")

    def __init__(
        self,
        *,
        python_callable: Callable[..., object],
        op_args: Sequence[object] | None = None,
        op_kwargs: Mapping[str, object] | None = None,
        engine: str = "pyarrow",
        **given: object,
    ) -> None:
        engine = {"auto": "pyarrow", "submit": "spark"}.get(engine, engine)
        arguments = {"engine": engine} | {
            one.name: given.pop(keyword) for one in fields(Process)
            if (keyword := RENAMED.get(one.name, one.name)) in given
        }  # fmt: skip
        given["multiple_outputs"] = False  # a report is one
        super().__init__(
            kwargs_to_upstream={"job": "process", "arguments": arguments, "engine": engine},
            python_callable=_without_events(python_callable), op_args=op_args,
            op_kwargs=op_kwargs, **given,
        )  # fmt: skip
        self._function = python_callable

    def _execute(self, context: "Context") -> dict[str, object] | None:
        """Consume up to the tail, with the function, and return the report."""
        with failing():
            if not settings_of(self.conn_id).functions_of_dags:
                raise InvalidInput(
                    "function_not_allowed",
                    f"the function {self._function.__name__!r} is of a DAG file, which "
                    "functions_of_dags in weir.toml refuses; put it into a package of "
                    "function_packages and use ProcessOperator.",
                )
        if self.op_args:
            raise AirflowFailException("name the arguments of the function, but for the events.")
        name = f"dag:{self._function.__name__}"
        self._own = {name: self._function}
        parameters = dict(self.op_kwargs)
        self.arguments = {**(self.arguments or {}), "function": name, "parameters": parameters}
        return super()._execute(context)


def _without_events(function: Callable[..., object]) -> Callable[..., object]:
    """Return the function as a DAG file calls it: without the events, and without the stores."""
    known = inspect.signature(function)
    _, *rest = known.parameters.values()

    @functools.wraps(function)
    def called(**_: object) -> None:
        raise NotImplementedError

    called.__signature__ = known.replace(  # type: ignore[attr-defined]
        parameters=[one for one in rest if one.name != "adjuncts"]
    )
    return called


def weir_process(
    python_callable: Callable[..., object] | None = None, **given: object
) -> TaskDecorator:
    """Call a function of the DAG file with what a reader group has not read yet, exactly once.

        @task.weir_process(reader_group="totals", outputs=["parquet:totals"])
        def large(orders, at_least):
            return orders.filter(pc.field("amount") >= at_least)

        large(at_least=10)

    The first argument of the function is the events: a pyarrow table, or with engine "spark" a
    DataFrame of a session in the worker: of the Spark that the setting `spark` names, or one that
    computes where the connection `spark_conn_id` says (in the deploy mode client). The others are
    those of the call, by their names. A function with stores (`adjuncts`) gets them as its argument
    `adjuncts`. The rest are the arguments of `ProcessOperator`, all templated, and those of every
    task.

    The installation may refuse it by its setting `functions_of_dags`.
    """
    return task_decorator_factory(
        python_callable=python_callable, decorated_operator_class=ProcessOwnOperator, **given
    )
