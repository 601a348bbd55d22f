"""### Reconcile a database that was restored, moved or failed over with its warehouse.

**Parameters.** What to do with the files that the database does not know because they were written after the
backup. *report* changes nothing: run it first. With *keep* and *delete*, every stream continues in new segments,
with transaction numbers and clocks beyond everything that was given out before, and open appends
are forgotten: begin them again.

**On failure.** Everything done so far is kept; run it again. Until it has succeeded, Weir appends and deletes
nothing.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, UPKEEP, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_recover", doc_md=__doc__, params=form("recover"), **manual(UPKEEP, IRREVERSIBLE)):
    WeirJobOperator(task_id="recover", job="recover")
