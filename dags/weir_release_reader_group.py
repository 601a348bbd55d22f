"""### Let retention delete what a subscriber no longer needs.

**Parameters.** A reader group whose release is manual, and a place: what lies before it need not be kept for
this group any more. Default: where the group stands.

**On failure.** Nothing is released unless the place is valid and not behind what was released before.
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
