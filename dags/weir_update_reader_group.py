"""### Change the configuration of a reader group.

**Parameters.** Only what is filled in changes: whether it is a subscriber (protected from where it stands), what it
does about a gap, which streams it reads (new ones from *Start*), how many checkpoints may wait, which keys are pinned
to which readers.

**On failure.** One transaction: all there or not at all. Give the generation to refuse what has changed meanwhile.
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
