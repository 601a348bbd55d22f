"""### Create a stream.

**Parameters.** The stream's name, its routing key, how many segments to begin with, and what to do with
rows that have no key or do not fit. Defaults: one segment, refuse such rows, truncate what all
subscribers have consumed.

**On failure.** Nothing is created unless everything is valid. A run that is retried or cleared finds what it
did and returns it.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_create_stream", doc_md=__doc__, params=form("create_stream"), **manual(STREAMS)):
    WeirJobOperator(task_id="create_stream", job="create_stream")
