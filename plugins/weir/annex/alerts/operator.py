"""Carry Weir's alerts out of its database: to any notifier of Airflow, once when one begins, and
once when it ends."""

import copy
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypedDict

from airflow.sdk import BaseNotifier, BaseOperator

from weir.airflow.connection import settings_of
from weir.airflow.tasks import answering, failing, run_of, with_retries
from weir.database.connection import Database
from weir.errors import Incomplete, counted
from weir.history.job_runs import RunId, record_end, record_start
from weir.queries.annex.alerts import operator as sql

if TYPE_CHECKING:
    from weir.airflow.context import Context

Notify = Callable[[object], object]
JOB = "alerts"


class Report(TypedDict, total=False):
    """What a run has told, for the next one: the alerts that last, the identities of those that are
    to be told, and the number of the newest one; and how many began and ended."""

    open: dict[str, dict[str, object]]
    owed: dict[str, str]
    number: int
    begun: int
    ended: int


class AlertsOperator(BaseOperator):
    """Tell each row of `weir.troubles` once when it begins, and once when it ends.

    :param notify: a notifier of Airflow, or any function of a context, or several of them. The
        context has `weir_alert`: `identity`, `ended`, `alert` (its kind), `severity`, `stream`,
        `reader_group`, `at`, `message`, `advice`. Templates of a notifier have it, too.
    :param conn_id: a connection of type Weir, which names the installation. Default: that of
        WEIR_CONFIG or `weir.toml`.

    A task remembers what it has told in the report of its run. If it is killed between telling and
    remembering, or a notifier fails, it tells that alert again, with the same identity.
    """

    def __init__(self, *, notify: Notify | Sequence[Notify], conn_id: str = "", **kwargs: object):
        super().__init__(**with_retries(kwargs))
        self.notify: list[Notify] = [notify] if callable(notify) else list(notify)
        self.conn_id = conn_id

    def execute(self, context: "Context") -> Report:
        """Compare the alerts with what was told, and tell what is new and what has ended."""
        with (
            answering(self, context, JOB, {}),
            failing(),
            Database.of(settings_of(self.conn_id)) as database,
        ):
            return self._tell_all(context, run_of(context["ti"]), database)

    def _tell_all(self, context: "Context", run: RunId, database: Database) -> Report:
        found: Report | None = database.transaction(
            lambda c: sql.told(c, dag_id=run.dag_id, task_id=run.task_id, job=JOB)
        )
        before = found or Report()
        told, owed = dict(before.get("open", {})), dict(before.get("owed", {}))
        number = before.get("number", 0)
        rows = database.transaction(lambda c: sql.alerts(c, dag_id=run.dag_id, task_id=run.task_id))
        now: dict[str, dict[str, object]] = {
            row.key: {**row._asdict(), "at": row.at.isoformat() if row.at else None} for row in rows
        }
        begun = [(key, one) for key, one in now.items() if key not in told]
        ended = [(key, one) for key, one in told.items() if key not in now]
        database.transaction(lambda c: record_start(c, run, JOB, {}))
        # An alert that comes back is another one; one that is told again is the same. So its number
        # is remembered before it is told, and until it is.
        number += any(key not in owed for key, _ in begun)
        owed = {key: owed.get(key, f"{key} #{number}") for key, _ in begun}
        report: Report = {
            "open": told, "owed": owed, "number": number, "begun": 0, "ended": 0,
        }  # fmt: skip

        def remember() -> None:
            database.transaction(lambda c: record_end(c, run, "running", report={**report}))

        if begun:
            remember()
        failed: list[str] = []
        for key, one in begun:
            alert = {**one, "identity": owed[key], "ended": False}
            if self._tell(context, alert, failed):
                told[key] = {name: value for name, value in alert.items() if name != "ended"}
                del owed[key]
                report["begun"] += 1
                remember()
        for key, one in ended:
            if self._tell(context, {**one, "ended": True}, failed):
                del told[key]
                report["ended"] += 1
                remember()
        error = None if not failed else Incomplete(
            "some_failed", f"{counted(len(failed), 'alert')} could not be told; the first "
            f"failure is: {failed[0]}", report=report, retryable=True,
        )  # fmt: skip
        new = counted(report["begun"], "alert")
        self.sentence = f"{new} began, {report['ended']} ended, {len(told)} last"
        state = "failed" if error else "succeeded"
        database.transaction(
            lambda c: record_end(
                c,
                run,
                state,
                report={**report},
                sentence="" if error else self.sentence,
                error=error.sentence if error else None,
                retryable=True,
            )
        )
        if error:
            raise error
        return report

    def _tell(self, context: "Context", alert: dict[str, object], failed: list[str]) -> bool:
        self.log.info("%s: %s", "ended" if alert["ended"] else "began", alert["message"])
        given = {**context, "weir_alert": alert}
        try:
            for one in self.notify:
                if isinstance(one, BaseNotifier):  # which renders its templates in place, and whose
                    notifier = copy.deepcopy(one)  # call hides its failures
                    notifier.render_template_fields(given)
                    notifier.notify(given)
                else:
                    one(given)
        except Exception as error:
            self.log.exception("an alert could not be told")
            failed.append(f"{alert['identity']}: {type(error).__name__}: {error}")
            return False
        return True
