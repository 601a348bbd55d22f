"""The operator of what has a schedule: it looks once more before it starts anything."""

import logging
from typing import Any

from weir.airflow.connection import settings_of
from weir.airflow.operators import WeirJobOperator
from weir.airflow.tasks import failing
from weir.database.connection import Database
from weir.operations.form import parse
from weir.operations.jobs import FORMS
from weir.operations.work import patience_of, work_of

log = logging.getLogger("weir.airflow")


class PeriodicJobOperator(WeirJobOperator):
    """Run a job if it has something to do, or if a person has filled in its form; else succeed at
    once, in the worker, and leave no row of the run."""

    def _execute(self, context: Any) -> dict[str, object] | None:
        arguments = dict(context["params"]) if self.arguments is None else self.arguments
        form = FORMS[self.job]
        with failing():
            if parse(form, arguments) == form():
                settings = settings_of(self.conn_id)
                with Database.of(settings) as database:
                    found = work_of(database, [self.job], patience_of(settings))
                if not found:
                    self.sentence = f"nothing to do for job {self.job}"
                    return None
                log.info("job %s begins: %s", self.job, "; ".join(found[self.job]))
        return super()._execute(context)
