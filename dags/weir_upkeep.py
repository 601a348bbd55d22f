"""### Abort transactions whose lease has expired, sweep garbage, and prune old metadata.

The run cleans up what killed appends and consumers left behind: it aborts their transactions, deletes garbage files
after the grace period, and drops their staging tables. It prunes the metadata of what lies wholly below the head and
below the positions of all groups, and of versions of adjunct stores that have expired (`metadata_history`),
old checkpoints that are automatic or were given up (`checkpoint_history`), and old rows of batches and of
`weir.job_runs` (`job_history`).

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_upkeep", schedule="17 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="upkeep", job="upkeep")
