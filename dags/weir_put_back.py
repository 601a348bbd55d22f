"""### Put rejected events back, after the function or what it needs was mended.

**Parameters.** The reader group whose consumer has rejected events (`on_error` = quarantine), its function and its
outputs; both may be empty if the consumer is declared. Each rejected event is put back once.

**Rows that an append has rejected** never became events, so no consumer has read them: take them from
`<stream>.rejected` (`weir read shop/orders.rejected --where "source NOT LIKE 'group %'"`), correct them, and append
them.

**On failure.** If the function fails on an event again, the run stops and names it; nothing of that batch is published.
"""

from airflow.sdk import DAG

from weir.airflow.assets import APPENDED
from weir.airflow.forms import DATA, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_put_back", doc_md=__doc__, params=form("put_back"), **manual(DATA)):
    WeirJobOperator(task_id="put_back", job="put_back", outlets=[APPENDED])
