"""### Delete a reader group with its positions, batches and checkpoints.

**Parameters.** The group. Its results are kept. It no longer holds any events back. You cannot undo this.

**On failure.** One transaction: everything or nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_delete_reader_group",
    doc_md=__doc__,
    params=form("delete_reader_group"),
    **manual(READER_GROUPS, IRREVERSIBLE),
):
    WeirJobOperator(task_id="delete_reader_group", job="delete_reader_group")
