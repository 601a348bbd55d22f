"""### Split or merge segments of a stream by hand.

**Parameters.** The active segments to replace (see `SELECT * FROM weir.segments WHERE active`), and the number of
equal parts, or the boundaries of the parts. Example: the segment `1.0` and 2 parts split it into two equal segments.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_scale_stream", doc_md=__doc__, params=form("scale_stream"), **manual(STREAMS)):
    WeirJobOperator(task_id="scale_stream", job="scale_stream")
