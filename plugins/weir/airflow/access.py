"""Who may see what, by Airflow's login and its auth manager. Only this module imports what Airflow
has for that, which is not part of its public interface."""

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import (
    ConnectionDetails,
    DagAccessEntity,
)
from airflow.api_fastapi.core_api.security import (
    GetUserDep,
    get_user,
    requires_access_asset,
    requires_access_dag,
)
from airflow.models import Connection
from fastapi import HTTPException, status

__all__ = ["get_user", "may_look_through", "may_see_runs", "may_see_streams"]

may_see_runs = requires_access_dag("GET", DagAccessEntity.TASK_INSTANCE)
may_see_streams = requires_access_asset("GET")


def may_look_through(user: GetUserDep, conn_id: str = "") -> None:
    """Refuse to look through a connection that the user may not read: a page shows what is behind
    it."""
    if not conn_id:
        return
    team = Connection.get_team_name(conn_id)  # noqa: AIR311  # the SDK's knows no teams
    details = ConnectionDetails(conn_id=conn_id, team_name=team)
    if not get_auth_manager().is_authorized_connection(method="GET", details=details, user=user):
        raise HTTPException(status.HTTP_403_FORBIDDEN, "Forbidden")
