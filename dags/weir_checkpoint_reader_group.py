"""### Record where a reader group stands, under a name.

**Parameters.** The group and a name for the checkpoint. A subscriber's checkpoint releases what it has consumed.
With *Barrier* the checkpoint waits for the batches that are open now, and the report names them: the task itself does
not wait, and `weir.checkpoints` says when it is complete. *Cancel* gives one up that waits.

**On failure.** Without a barrier it is a snapshot in one transaction and waits for nobody.
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
