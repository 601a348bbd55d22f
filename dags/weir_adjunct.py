"""### Build versions of the adjunct stores whose streams have moved.

A version is the last one, without the keys that have changed, and what these are now; it is published at once, for all
who join the store from then on. `weir.adjunct_stores` says how far behind each store is, and why its last build failed.
With `adjunct_stores`, the run builds these. Versions that their store no longer keeps expire.

**On failure.** Everything done so far is kept, and the next run does the rest. If one store fails, the run continues
with the others, names it, and fails at its end.
"""

from airflow.sdk import DAG

from weir.airflow.forms import UPKEEP, form, periodic
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_adjunct",
    schedule="1-59/5 * * * *",
    doc_md=__doc__,
    params=form("adjunct"),
    **periodic(UPKEEP),
):
    WeirJobOperator(task_id="adjunct", job="adjunct")
