"""### Delete a sealed stream with everything it owned.

**Parameters.** The stream, which must be sealed. While a subscriber has unread events it is refused, unless you
say that they may go too. Its files are deleted by `weir_upkeep` after the grace period. A stream of the same name
may then be created anew; its readers are told that theirs is gone.

**On failure.** One transaction: all there or not at all. It can't be undone.
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
