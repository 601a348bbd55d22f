"""### Record the position of a reader group under a name.

**Parameters.** The group, and a name for the checkpoint. If the group is a subscriber, the checkpoint releases the
events before it. A *Barrier* waits for the batches that are open now; the report names them. The task itself does
not wait: `weir.checkpoints` says when the checkpoint is complete. *Cancel* gives up a checkpoint that waits.

**On failure.** Nothing is recorded. Retry it.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_checkpoint_reader_group",
    doc_md=__doc__,
    params=form("checkpoint_reader_group"),
    **manual(READER_GROUPS),
):
    WeirJobOperator(task_id="checkpoint_reader_group", job="checkpoint_reader_group")
