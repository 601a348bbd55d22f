"""### Record the tail of each stream that has moved.

The recorded cuts are the retention set. One statement records all streams.

**On failure.** Everything done so far is kept, and the next run does the rest.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, periodic
from weir.airflow.operators import WeirJobOperator

with DAG("weir_stream_cuts", schedule="*/5 * * * *", doc_md=__doc__, **periodic(UPKEEP)):
    WeirJobOperator(task_id="stream_cuts", job="stream_cuts")
