"""### Let retention truncate what a subscriber no longer needs.

**Parameters.** A reader group whose release is manual, and a starting point: retention no longer keeps the events
before it for this group. The default is the position of the group.

**On failure.** If the starting point is invalid, or behind what the group released before, nothing is released.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_release_reader_group",
    doc_md=__doc__,
    params=form("release_reader_group"),
    **manual(READER_GROUPS, IRREVERSIBLE),
):
    WeirJobOperator(task_id="release_reader_group", job="release_reader_group")
