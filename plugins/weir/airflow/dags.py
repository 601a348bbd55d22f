"""The DAGs of all actions: a DAG file with `globals().update(weir_dags())` has them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from airflow.sdk import DAG, get_parsing_context

from weir.actions import ACTIONS
from weir.airflow.announcing import partitions_dag
from weir.airflow.forms import IRREVERSIBLE, form, manual, periodic
from weir.airflow.operators import WeirJobOperator
from weir.airflow.readers import form_per_reader
from weir.airflow.suggestions import suggested_names


def weir_dags() -> dict[str, DAG]:
    """Return a DAG for each action, by its id: `weir_` and the action's name; and
    `weir_partitions`. Where Airflow runs a task, the DAG of that task alone."""
    of_task = get_parsing_context().dag_id  # where a task runs, nobody fills in a form
    names = {} if of_task else suggested_names()
    every: dict[str, Callable[[], DAG]] = {
        f"weir_{name}": partial(dag_of, name, names) for name in ACTIONS
    }
    every["weir_partitions"] = partitions_dag
    wanted = {of_task} & every.keys() or every
    return {dag_id: make() for dag_id, make in every.items() if dag_id in wanted}


def dag_of(name: str, names: Mapping[str, Sequence[str]]) -> DAG:
    """Return the DAG of an action: its page, its form, which suggests these names, and one task
    that submits its job. A task of `process` is mapped, one for each reader."""
    action = ACTIONS[name]
    tags = [action.subject, *([IRREVERSIBLE] if action.irreversible else [])]
    settings = manual(*tags) if action.schedule is None else periodic(action.schedule, *tags)
    with DAG(f"weir_{name}", doc_md=action.page, params=form(name, names), **settings) as dag:
        task: dict[str, Any] = {"task_id": name, "job": name}
        task["doc_md"] = f"Runs `weir.actions.{name}`:\n\n```python\n{action.source}```\n"
        if name == "process":
            mapped = WeirJobOperator.partial(**task)
            mapped.expand(arguments=form_per_reader())
        else:
            WeirJobOperator(**task)
    return dag
