"""### Truncate a stream before a starting point, by hand.

**Parameters.** The stream, and the starting point, before which everything is truncated: `tail` (all events),
`time 2026-01-01T00:00:00Z`, `position` or `checkpoint NAME` of a reader group, or an offset for each segment,
`0.0=12, 1.0=7` (see the views `weir.retention_set` and `weir.positions`).

**First a dry run.** Unless *Dry run* is switched off, the run changes nothing. Its log and its report (the XCom
`return_value`) say how many events, bytes and files it would truncate, and how many events each reader group would
lose unread. Trigger it again with *Dry run* off to truncate them.

**What it does not check.** It truncates unconditionally: it checks neither subscribers nor limits. You cannot undo
this. `weir_retention` truncates by itself what all subscribers have released; for limits of age and size use
`weir_update_stream`.

**On failure.** If the starting point is invalid, or behind the head, the run names the segment and truncates nothing.
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
