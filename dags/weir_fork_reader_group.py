"""### Create a reader group that stands where another does, or did.

**Parameters.** The first group, the new name, and where to begin: where it stands now, one of its checkpoints, or
any other place. To replay or to debug; the first group is left alone.

**On failure.** One transaction. A place below the head is refused, with how many events are gone.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_fork_reader_group",
    doc_md=__doc__,
    params=form("fork_reader_group"),
    **manual(READER_GROUPS),
):
    WeirJobOperator(task_id="fork_reader_group", job="fork_reader_group")
