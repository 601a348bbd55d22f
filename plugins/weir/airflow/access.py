"""Who may see what, by Airflow's login and its auth manager. Only this module imports what Airflow
has for that, which is not part of its public interface."""

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import (
    ConnectionDetails,
    DagAccessEntity,
    DagDetails,
)
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    get_user,
    requires_access_asset,
    requires_access_dag,
)
from airflow.configuration import conf
from airflow.models import Connection
from airflow.models.dag import DagModel
from fastapi import HTTPException, status

from weir.airflow.connection import check_connection
from weir.history.job_runs import BY_HAND
from weir.pages.actions import Trigger

__all__ = [
    "get_user", "may_look_through", "may_see_events", "may_see_runs", "may_see_streams",
    "seen_dags", "trigger",
]  # fmt: skip

may_see_runs = requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE)
may_see_streams = requires_access_asset("GET")
# Data, not only what there is: of those who may tell Airflow that there is new data.
may_see_events = requires_access_asset("POST")


def may_look_through(user: GetUserDep, conn_id: str = "") -> None:
    """Refuse to look through a connection that the user may not read: a page shows what is behind
    it."""
    if not conn_id:
        return
    check_connection(conn_id)
    team = Connection.get_team_name(conn_id)  # noqa: AIR311  # the SDK's knows no teams
    details = ConnectionDetails(conn_id=conn_id, team_name=team)
    if not get_auth_manager().is_authorized_connection(method="GET", details=details, user=user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")


def trigger(action: str, user: GetUserDep, conn_id: str = "") -> Trigger:
    """Return where a browser asks Airflow for a run of an action, which checks again who asks; or
    why this user can't."""
    dag_id = f"weir_{action}"
    refused = None
    if conn_id:
        refused = (
            f"{dag_id} acts on the installation of the workers, not on that of the connection "
            f"{conn_id}: use an operator with conn_id={conn_id!r} in a DAG, or the command."
        )
    elif (model := DagModel.get_dagmodel(dag_id)) is None or model.is_stale:
        refused = f"Airflow has no DAG {dag_id}: add Weir's DAG file, or use the command."
    elif not get_auth_manager().is_authorized_dag(
        method="POST", access_entity=DagAccessEntity.RUN, user=user,
        details=DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id)),
    ):  # fmt: skip
        refused = f"You may not trigger {dag_id}; whoever administers Airflow can let you."
    elif model.is_paused:
        refused = f"{dag_id} is paused: unpause it, then load this page again."
    address = None if refused else f"../api/v2/dags/{dag_id}/dagRuns"
    return Trigger(dag_id=dag_id, address=address, refused=refused)


def seen_dags(user: GetUserDep) -> set[str] | None:
    """Return the DAGs whose runs a user may see in a list, as Airflow lists task instances: those
    that they may see, if they may see task instances. None for all, also those that are gone: for
    whoever may see what no DAG of Airflow has, unless DAGs are of teams."""
    manager = get_auth_manager()

    def may_see_runs_of(dag_id: str | None) -> bool:
        return bool(manager.is_authorized_dag(
            method="GET", access_entity=DagAccessEntity.TASK_INSTANCE,
            details=DagDetails(id=dag_id), user=user,
        ))  # fmt: skip

    if not may_see_runs_of(None):
        return set()
    by_hand = {BY_HAND} if may_see_runs_of(BY_HAND) else set()
    if by_hand and not conf.getboolean("core", "multi_team", fallback=False):
        return None
    seen: set[str] = manager.get_authorized_dag_ids(user=user, method="GET")
    return seen | by_hand
