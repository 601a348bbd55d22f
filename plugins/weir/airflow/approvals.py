"""Ask a person before a task loses data: the exact loss is the body of Airflow's question, and the
task waits without a worker until it is answered."""

from datetime import timedelta
from typing import TYPE_CHECKING, NoReturn, TypedDict

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException
from airflow.sdk.exceptions import TaskAwaitingInput
from airflow.sdk.execution_time.hitl import upsert_hitl_detail
from sqlalchemy import text

from weir.database.connection import Database
from weir.operations.approval import Loss

if TYPE_CHECKING:
    from weir.airflow.context import Context

APPROVE, REJECT = "Approve", "Reject"


class Answer(TypedDict, total=False):
    """What a person has answered; or an error, if nobody has in time."""

    error: str
    error_type: str
    responded_by_user: dict[str, str] | None
    chosen_options: list[str]


# A superuser is a member of every role without anybody having said so.
_EXCUSED = text(
    """SELECT EXISTS (SELECT FROM pg_roles me, pg_roles excused
        WHERE me.rolname = session_user AND excused.rolname = 'weir_no_approval'
        AND NOT me.rolsuper AND pg_has_role(me.oid, excused.oid, 'MEMBER'))"""
)


def is_excused(database: Database) -> bool:
    """Return whether the task's login is a member of the role `weir_no_approval`, whose tasks ask
    nobody. The administrator of Postgres makes that role, and says who is in it."""
    excused: bool = database.transaction(lambda c: c.execute(_EXCUSED).scalar_one())
    return excused


def ask(
    context: "Context",
    job: str,
    arguments: dict[str, object],
    loss: Loss,
    timeout: timedelta | None,
) -> NoReturn:
    """Ask in Airflow's UI whether this loss is meant. The task then continues with `approved`."""
    upsert_hitl_detail(
        ti_id=context["ti"].id,
        options=[APPROVE, REJECT],
        subject=f"{job.replace('_', ' ')}: is this meant?",
        body="\n".join(f"- {_plain(line)}" for line in loss.lines),
        params={},
    )
    raise TaskAwaitingInput(
        method_name="approved",
        kwargs={"arguments": {**arguments, **loss.arguments}, "facts": loss.facts},
        timeout=timeout,
    )


def answer_of(event: Answer) -> str:
    """Return who has approved. Raises what ends the task if nobody has."""
    if "error" in event:
        raise AirflowFailException(
            "nobody approved it in time, so nothing was done; trigger it again to be asked again."
        )
    who = (event.get("responded_by_user") or {}).get("name") or "somebody"
    if APPROVE not in event["chosen_options"]:
        raise AirflowSkipException(f"{who} rejected it, so nothing was done")
    return who


def _plain(line: str) -> str:
    """Return a line as Markdown that shows it as it is."""
    return "".join(f"\\{one}" if one in "\\`*_{}[]<>#|~" else one for one in line)
