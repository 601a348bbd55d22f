"""### Make a stream read-only for ever.

**Parameters.** The stream. Appends that are being written are aborted. Readers read to the end of the stream, and
are told that it is the end. You cannot undo this.

**On failure.** One transaction. Sealing a sealed stream again changes nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_seal_stream", doc_md=__doc__, params=form("seal_stream"), **manual(STREAMS, IRREVERSIBLE)
):
    WeirJobOperator(task_id="seal_stream", job="seal_stream")
