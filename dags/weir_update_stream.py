"""### Change the configuration of a stream.

**Parameters.** Only what is filled in changes: how it scales and how many segments it has, what happens to rows
without a key or with other columns, whether what is consumed is deleted, tags, more columns. The routing key
can't change.

**On failure.** One transaction: all there or not at all. Appends that run meanwhile lose nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_update_stream", doc_md=__doc__, params=form("update_stream"), **manual(STREAMS)):
    WeirJobOperator(task_id="update_stream", job="update_stream")
