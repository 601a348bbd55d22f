"""### Append files to a stream, as one transaction.

**Parameters.** The stream, and files or folders below an input root, in the order in which their rows are to be
read; Parquet, CSV, TSV or JSON. If the stream has an event time, *Complete until* states that everything before a
time is appended with these files.

**On failure.** Retry or clear the run: no row is lost, and none is appended twice. The same files again append
nothing. A file that another transaction has appended is refused by name.
"""

from airflow.sdk import DAG

from weir.airflow.assets import APPENDED
from weir.airflow.forms import DATA, form, manual
from weir.airflow.operators import WeirJobOperator

with DAG("weir_ingest", doc_md=__doc__, params=form("ingest"), **manual(DATA)):
    WeirJobOperator(task_id="ingest", job="ingest", outlets=[APPENDED])
