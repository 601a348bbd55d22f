"""### Take a reader out of a group by hand.

**Parameters.** The reader, and how far it got in its open batch, if you know; else others go on at the last committed
position and take the batch over whole. Leases do the same by themselves, only later.

**On failure.** One transaction. Whatever the reader still does is refused.
"""

from airflow.sdk import DAG

from weir.airflow.forms import READER_GROUPS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_reader_offline", doc_md=__doc__, params=form("reader_offline"), **manual(READER_GROUPS)
):
    WeirJobOperator(task_id="reader_offline", job="reader_offline")
