"""### Define an adjunct store.

**Parameters.** Its name, the stream of changes, and how a key and a value are made of an event; all have defaults: the
routing key of the stream, and all columns of the event. From this moment on the store is a subscriber of its stream.
`weir_adjunct` builds its first version within five minutes.

**On failure.** If anything is invalid, nothing is defined.
"""

from airflow.sdk import DAG

from weir.airflow.forms import STREAMS, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG(
    "weir_define_adjunct_store",
    doc_md=__doc__,
    params=form("define_adjunct_store"),
    **manual(STREAMS),
):
    WeirJobOperator(task_id="define_adjunct_store", job="define_adjunct_store")
