"""### Let a reader group stand at another place.

**Parameters.** Where it goes: a checkpoint, a time, a cut, the head, the tail, or its own start. Going back over
what was read and committed repeats outputs, so it must be allowed. Open batches are abandoned.

**On failure.** One transaction. A place below the head is refused, with how many events are gone.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_reset_reader_group",
    doc_md=__doc__,
    params=form("reset_reader_group"),
    **manual(READER_GROUPS),
):
    WeirJobOperator(task_id="reset_reader_group", job="reset_reader_group")
