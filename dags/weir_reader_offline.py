"""### Take a reader out of its group by hand.

**Parameters.** The reader and, if you know it, how far it got in its open batch. Without that, other readers
continue at the last committed position and take over the whole batch. Leases do the same by themselves, only later.

**On failure.** One transaction. Everything that the reader still does is refused.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_reader_offline", doc_md=__doc__, params=form("reader_offline"), **manual(READER_GROUPS)
):
    WeirJobOperator(task_id="reader_offline", job="reader_offline")
