"""### Abort transactions whose lease has expired, sweep garbage, and prune old metadata.

The run cleans up what a killed append left behind. It deletes the metadata of what lies wholly below the head and
below the positions of all groups, old automatic checkpoints (`checkpoint_history`), and old rows of `weir.job_runs`
(`job_history`).

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_upkeep", schedule="17 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="upkeep", job="upkeep")
