"""What Weir uses of the context of a task, for type checkers, which do not read Airflow's types. No
module imports this while it runs."""

from collections.abc import Mapping
from typing import Protocol, TypedDict
from uuid import UUID

from airflow.sdk import DAG
from airflow.sdk.execution_time.context import OutletEventAccessors, TriggeringAssetEventsAccessor


class TaskKey(Protocol):
    """The names of a task instance."""

    dag_id: str
    run_id: str
    task_id: str
    map_index: int | None
    try_number: int


class TaskInstance(TaskKey, Protocol):
    """The task instance that runs."""

    id: UUID

    def get_dag(self, dag_id: str) -> DAG: ...

    def get_ti_count(self, *, dag_id: str, task_ids: list[str], run_ids: list[str]) -> int: ...

    def get_task_states(
        self, *, dag_id: str, task_ids: list[str], run_ids: list[str]
    ) -> Mapping[str, Mapping[str, str | None]]: ...

    def xcom_pull(self, *, task_ids: str) -> list[dict[str, object]] | None: ...


class Context(TypedDict, total=False):
    """What Airflow gives to a task that runs."""

    ti: TaskInstance
    task: object
    params: Mapping[str, object]
    exception: object
    inlet_events: object
    outlet_events: OutletEventAccessors
    triggering_asset_events: TriggeringAssetEventsAccessor


class Task(Protocol):
    """A task of Weir. `sentence`: what became of it, for the last line of its log."""

    conn_id: str
    sentence: str
