"""### Truncate what all subscribers have consumed, and delete dead files.

Each stream is decided and truncated in one transaction; each decision and its reason is in
`weir.retention_decisions`. Subscribers that have timed out, lost events or soon will are named in
the log (of all streams: `weir.retention_alerts`). Files go after the grace period. `dry_run` only says
what would be done.

**On failure.** Whatever was done stays done; the next run does the rest. One stream or group that
fails does not stop the others; it is named, and fails the task at its end.
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
