"""### Create a reader group.

**Parameters.** Its name, the streams it reads, where it starts, and whether it is a subscriber: events are kept
until all subscribers have consumed them, from this moment on.

**On failure.** Nothing is created unless everything is valid.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_create_reader_group",
    doc_md=__doc__,
    params=form("create_reader_group"),
    **manual(READER_GROUPS),
):
    WeirJobOperator(task_id="create_reader_group", job="create_reader_group")
