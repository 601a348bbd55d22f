"""### Abort transactions whose lease has run out, and delete dead files.

What a killed append left behind is cleaned up here.

**On failure.** Whatever was done stays done; the next run does the rest.
"""

from airflow.sdk import DAG

from weir.airflow.forms import PERIODIC
from weir.airflow.operators import WeirJobOperator

with DAG("weir_upkeep", schedule="17 * * * *", doc_md=__doc__, **PERIODIC):
    WeirJobOperator(task_id="upkeep", job="upkeep")
