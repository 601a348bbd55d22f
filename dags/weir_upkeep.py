"""### Abort transactions whose lease has run out, delete dead files, and prune old metadata.

What a killed append left behind is cleaned up here, and what lies wholly below the head and below everybody's
positions leaves the database, as do old automatic checkpoints (`checkpoint_history`) and what jobs did long ago
(`job_history`).

**On failure.** Whatever was done stays done; the next run does the rest.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_upkeep", schedule="17 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="upkeep", job="upkeep")
