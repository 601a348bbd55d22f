"""### Delete an adjunct store with all its versions.

**Parameters.** The store. Its stream is kept, and no longer waits for it. The files are deleted after the grace period.

**On failure.** While an open batch of a consumer is read with the store, nothing is deleted.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_delete_adjunct_store",
    doc_md=__doc__,
    params=form("delete_adjunct_store"),
    **manual(STREAMS, IRREVERSIBLE),
):
    WeirJobOperator(task_id="delete_adjunct_store", job="delete_adjunct_store")
