"""### Delete all events of a stream before a place, by hand.

**Parameters.** The stream, and the place before which everything is deleted: `tail` (all events), `time
2026-01-01T00:00:00Z`, `position` or `checkpoint NAME` of a reader group, or an offset for each segment,
`0.0=12, 1.0=7` (see the views `weir.retention_set` and `weir.positions`).

**First a dry run.** Unless *Dry run* is switched off, the run changes nothing: its log and its report (the XCom
`return_value`) say how many events, bytes and files would be deleted, and how many events that it has not read each
reader group would lose. Trigger it again with *Dry run* off to delete them.

**What it does not ask.** It can't be undone, and it heeds neither subscribers nor limits. What all subscribers have
consumed, `weir_retention` deletes by itself; for limits of age and size use `weir_update_stream`.

**On failure.** A place that is not valid, or behind the head, is refused with the segment's name; nothing is deleted.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_truncate_stream",
    doc_md=__doc__,
    params=form("truncate_stream"),
    **manual(STREAMS, IRREVERSIBLE),
):
    WeirJobOperator(task_id="truncate_stream", job="truncate_stream")
