"""Airflow reads its configuration when it is first imported, so that is settled here, before."""

import atexit
import importlib
import logging
import os
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_home = tempfile.TemporaryDirectory(prefix="weir-airflow-")
atexit.register(_home.cleanup)
for _name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
    del os.environ[_name]  # an installation's settings must not leak into tests
os.environ |= {
    "AIRFLOW_HOME": _home.name,
    "AIRFLOW__CORE__DAGS_FOLDER": str(REPOSITORY / "dags"),
    "AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins"),
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
}

# Airflow takes the root logger for itself; what other tests see in their output must not depend on
# whether this folder was collected before them.
_root = logging.getLogger()
_handlers, _level = list(_root.handlers), _root.level
importlib.import_module("airflow.dag_processing.dagbag")
_root.handlers[:] = _handlers
_root.setLevel(_level)
