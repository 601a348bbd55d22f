"""### Change the configuration of a reader group.

**Parameters.** Fields left empty are not changed. You can change whether the group is a subscriber (then it is
protected from its position on), how it releases events and when it times out, what it does about a gap, which streams
it reads (new ones from *Start*), whether its batches are aligned and how far a reader may be ahead, how many
checkpoints may wait, and which keys are pinned to which readers.

**On failure.** One transaction: everything or nothing. Give the generation to refuse the change if somebody else
has changed the group in the meantime.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_update_reader_group",
    doc_md=__doc__,
    params=form("update_reader_group"),
    **manual(READER_GROUPS),
):
    WeirJobOperator(task_id="update_reader_group", job="update_reader_group")
