"""### Change the configuration of a stream.

**Parameters.** Fields left empty are not changed. You can change how the stream scales and how many segments it
has, what happens to rows without a key or with other columns, what retention keeps and truncates and how often it
looks, the event time and the tags, and you can add columns. The routing key cannot change.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_update_stream", doc_md=__doc__, params=form("update_stream"), **manual(STREAMS)):
    WeirJobOperator(task_id="update_stream", job="update_stream")
