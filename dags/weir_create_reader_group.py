"""### Create a reader group.

**Parameters.** Its name, the streams that it reads, where it begins, and whether it is a subscriber: from this
moment on, retention keeps events until all subscribers have released them.

**On failure.** If anything is invalid, nothing is created.
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
