"""### Call a function with what a reader group has not read yet, exactly once.

**Parameters.** The group, `module:function` of a configured package, where the result goes, and how many tasks
share the work. They read batch after batch, up to the tail as it is at the start.

**On failure.** Results and positions are published together. If a task fails or is killed, another reader takes
over its open batch at once, or the next try or run does.
"""

from airflow.sdk import DAG

from weir.airflow.assets import APPENDED
from weir.airflow.forms import DATA, form, manual
from weir.airflow.operators import WeirJobOperator
from weir.airflow.readers import form_per_reader

with DAG("weir_process", doc_md=__doc__, params=form("process"), **manual(DATA)):
    WeirJobOperator.partial(task_id="process", job="process", outlets=[APPENDED]).expand(
        arguments=form_per_reader()
    )
