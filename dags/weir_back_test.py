"""### Replay a scaling policy over the recorded history of a stream, and change nothing.

**Parameters.** The stream, and a policy to try: whether it counts events or bytes, the target rate per second and
segment, and the rest of it. Without a target rate, the stream's own policy. Example: `nyc/flights`, event_rate, 50.

**Result.** The log and the report of the run have a table: segments, the largest rate of a segment and the number of
changes over time, recorded and with the policy, and each scale that it would have made. The report names a picture of
both (SVG) below the first output root.

**On failure.** Nothing has changed; run it again.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_back_test", doc_md=__doc__, params=form("back_test"), **manual(STREAMS)):
    WeirJobOperator(task_id="back_test", job="back_test")
