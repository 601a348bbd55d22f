"""### Change an adjunct store.

**Parameters.** What is left empty is not changed. The next build applies another value or delete condition to the
rows of the last version. Another key begins anew at the head of the stream, and the report says since when the stream
has events. Versions that exist keep what they are.

**On failure.** If anything is invalid, nothing is changed.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_update_adjunct_store",
    doc_md=__doc__,
    params=form("update_adjunct_store"),
    **manual(STREAMS),
):
    WeirJobOperator(task_id="update_adjunct_store", job="update_adjunct_store")
