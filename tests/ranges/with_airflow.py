"""The DAGs that a file of Airflow's folder gives, each with its form and its tasks. Prints how many
there are, and whether Airflow has its plugin, as JSON."""

import json
import runpy
import sys

import airflow
from airflow import plugins_manager
from airflow.sdk import DAG

found = [one for one in runpy.run_path(sys.argv[1]).values() if isinstance(one, DAG)]
for dag in found:
    dag.validate()
    assert dag.tasks, dag.dag_id
    assert all(dag.params.get_param(name).dump()["schema"] for name in dag.params), dag.dag_id
plugins = {one["name"] for one in plugins_manager.get_plugin_info()}  # Airflow has its own
dags = sorted(dag.dag_id for dag in found)
print(json.dumps({"version": airflow.__version__, "dags": dags, "plugin": "weir" in plugins}))
