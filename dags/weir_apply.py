"""### Make streams, adjunct stores, reader groups and consumers what a file declares.

**Parameters.** A YAML file below an input root, a function that returns the declarations, or the text itself
(docs/consumers.md has an example). A dry run says what differs. Nothing is ever deleted, and what the
file does not name is left alone.

**On failure.** Retry or trigger it again: what was changed does not differ any more. Changes that may lose data are
refused, before anything is changed, unless loss is allowed.
"""

from airflow.sdk import DAG

from weir.airflow.forms import DATA, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_apply", doc_md=__doc__, params=form("apply"), **manual(DATA)):
    WeirJobOperator(task_id="apply", job="apply")
