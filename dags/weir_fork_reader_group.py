"""### Create a reader group that begins where another one is or was.

**Parameters.** The existing group, the new name, and where to begin: at the group's position, at one of its
checkpoints, or at any other starting point. Use it to replay or to debug; the existing group does not change. The new
group has its streams, its end and its settings, but not its pins, and is a subscriber unless you say otherwise.

**On failure.** One transaction. A starting point whose events were truncated is refused, with the number of missing
events.
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
