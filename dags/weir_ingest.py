"""### Append files to a stream, as one transaction.

**Parameters.** The stream, and files or folders below an input root, in the order in which their rows are to be
read; parquet, csv or json.

**On failure.** The same files again append nothing. A file that another transaction holds is refused by name.
A run that is killed anywhere can be retried or cleared: nothing is lost, nothing comes twice.
"""

from airflow.sdk import DAG

from weir.airflow.assets import APPENDED
from weir.airflow.forms import DATA, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_ingest", doc_md=__doc__, params=form("ingest"), **manual(DATA)):
    WeirJobOperator(task_id="ingest", job="ingest", outlets=[APPENDED])
