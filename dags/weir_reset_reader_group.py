"""### Move a reader group to a starting point.

**Parameters.** The starting point: a checkpoint, a time, a cut, the head, the tail, or the group's own start. Going
back over committed events repeats outputs, so you must allow it. Open batches are abandoned.

**On failure.** One transaction. A starting point whose events were truncated is refused, with the number of missing
events.
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
