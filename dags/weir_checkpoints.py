"""### Checkpoint every reader group that has moved.

Releases the segments of readers whose lease has run out, publishes what subscribers have
consumed, and reports the lag of the groups that moved (of all: the view `weir.lag`).

**On failure.** Whatever was done stays done; the next run does the rest. One stream or group that
fails does not stop the others; it is named, and fails the task at its end.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_checkpoints", schedule="2-59/5 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="checkpoints", job="checkpoints")
