"""### Delete a reader group with its positions, batches and checkpoints.

**Parameters.** The group. What it has written stays; it holds nothing back any more. It can't be undone.

**On failure.** One transaction: all there or not at all.
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
