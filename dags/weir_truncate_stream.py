"""### Delete everything of a stream before a cut, by hand.

**Parameters.** The new head, such as `0.0=12, 1.0=7`: an offset for each segment. It can't be undone, and it
does not ask subscribers; retention does that by itself.

**On failure.** A cut that is not valid, or behind the head, is refused with the segment's name.
"""

from airflow.sdk import DAG

from weir.airflow.forms import MANUAL, form
from weir.airflow.operators import WeirJobOperator

with DAG("weir_truncate_stream", doc_md=__doc__, params=form("truncate_stream"), **MANUAL):
    WeirJobOperator(task_id="truncate_stream", job="truncate_stream")
