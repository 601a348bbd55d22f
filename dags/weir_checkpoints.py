"""### Make a checkpoint of each reader group that has moved.

The run also frees the segments of readers whose lease has expired, releases what subscribers have read, and
reports the lag of the groups that have moved (the view `weir.lag` has the lag of all groups).

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream or group fails, the
run continues with the others, names it, and fails at its end.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_checkpoints", schedule="2-59/5 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="checkpoints", job="checkpoints")
