"""### Make a stream read only for ever.

**Parameters.** The stream. Appends that are being written are aborted; readers read on to its end and are told
that it is the end. It can't be undone.

**On failure.** One transaction. Sealing a sealed stream again does nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_seal_stream", doc_md=__doc__, params=form("seal_stream"), **manual(STREAMS, IRREVERSIBLE)
):
    WeirJobOperator(task_id="seal_stream", job="seal_stream")
