"""### Truncate what all subscribers have released, and sweep garbage.

The run decides about each stream and truncates it in one transaction. `weir.retention_decisions` has each decision
with its reason. The log names the subscribers that have timed out, have lost events, or soon will
(`weir.retention_alerts` has those of all streams). Files are deleted after the grace period. With `dry_run`, the
run only says what it would do.

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream or group fails, the
run continues with the others, names it, and fails at its end.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, form, periodic
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_retention",
    schedule="*/30 * * * *",
    doc_md=__doc__,
    params=form("retention"),
    **periodic(UPKEEP),
):
    WeirJobOperator(task_id="retention", job="retention")
