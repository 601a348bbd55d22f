"""### Scale the streams whose segments no longer fit their load.

For streams with scaling by `event_rate` or `byte_rate`. The run measures how much each segment gets per second, splits
the hot ones so that the new segments get equal loads, and merges cold neighbours. `weir.scale_decisions` has each
decision with its reason, `weir.segment_rates` the rates, `weir.hot_keys` the routing keys that alone have too much.
With `dry_run`, the run only says what it would do.

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream fails, the run continues
with the others, names it, and fails at its end.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, form, periodic
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_scale",
    schedule="4-59/5 * * * *",
    doc_md=__doc__,
    params=form("scale"),
    **periodic(UPKEEP),
):
    WeirJobOperator(task_id="scale", job="scale")
