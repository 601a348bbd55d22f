"""### Run a function over what a reader group has not read yet, exactly once.

**Parameters.** The group, `module:function` of a configured package, and where its result goes. It reads batch
after batch up to the tail as it is at the start.

**On failure.** Output and positions are published together. A batch that was open when a run was killed is
taken over, whole, by the next run.
"""

from airflow.sdk import DAG

from weir.airflow.forms import MANUAL, form
from weir.airflow.operators import WeirJobOperator

with DAG("weir_process", doc_md=__doc__, params=form("process"), **MANUAL):
    WeirJobOperator(task_id="process", job="process")
