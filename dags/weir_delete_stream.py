"""### Delete a sealed stream with everything that it owns.

**Parameters.** The stream, which must be sealed. While a subscriber has unread events, the run refuses, unless you
allow it to delete unread events. `weir_upkeep` deletes the files after the grace period. You may then create a
stream of the same name; readers of the old one are told that it was deleted. You cannot undo this.

**On failure.** One transaction: everything or nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_delete_stream",
    doc_md=__doc__,
    params=form("delete_stream"),
    **manual(STREAMS, IRREVERSIBLE),
):
    WeirJobOperator(task_id="delete_stream", job="delete_stream")
