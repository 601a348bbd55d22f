"""### Create a stream.

**Parameters.** The name of the stream, its routing key, the number of segments to begin with, and what to do with
rows that have no key or do not fit. Defaults: one segment, refuse such rows, truncate what all subscribers have
released.

**On failure.** If anything is invalid, nothing is created. A run that is retried or cleared returns what it did
before.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_create_stream", doc_md=__doc__, params=form("create_stream"), **manual(STREAMS)):
    WeirJobOperator(task_id="create_stream", job="create_stream")
