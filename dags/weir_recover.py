"""### Make a database that was restored, moved or failed over fit to be used with its warehouse again.

**Parameters.** What becomes of the files that the database does not know, because they were written after the
backup was taken. *report* changes nothing: run it first. With *keep* and *delete* every stream goes on in new
segments, with transaction numbers and clocks beyond whatever was handed out before; open appends are aborted.

**On failure.** Whatever was done stays done; run it again. Until it has succeeded nothing is appended or deleted.
"""

from airflow.sdk import DAG

from weir.airflow.forms import IRREVERSIBLE, UPKEEP, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_recover", doc_md=__doc__, params=form("recover"), **manual(UPKEEP, IRREVERSIBLE)):
    WeirJobOperator(task_id="recover", job="recover")
