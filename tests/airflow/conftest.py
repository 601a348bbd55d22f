"""Airflow reads its configuration when it is first imported, so that is settled here, before."""

import atexit
import importlib
import json
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from weir.settings import Settings

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


def connect(
    patch: pytest.MonkeyPatch, host: str = "local[2]", mode: str = "client",
    name: str = "default", **extra: str,
) -> None:  # fmt: skip
    """Give Airflow a connection to a Spark."""
    connection = {"conn_type": "spark", "host": host, "extra": {"deploy-mode": mode, **extra}}
    patch.setenv(f"AIRFLOW_CONN_SPARK_{name.upper()}", json.dumps(connection))


@pytest.fixture
def execute(
    settings: "Settings", monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any] | None]:
    """Return `execute(operator, try_number, map_index)`, which does what Airflow does with a task
    instance: templates are filled in, then the operator is executed."""
    from tests.crash.jobs import write_config

    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    monkeypatch.setenv("PATH", "/nowhere")  # nothing here may submit anything

    def execute(operator: Any, try_number: int = 1, map_index: int = -1) -> Any:
        ti = SimpleNamespace(
            dag_id=operator.dag_id, run_id="r", task_id=operator.task_id, map_index=map_index,
            try_number=try_number, stats_tags={}, get_task_states=lambda **_: {},
        )  # fmt: skip
        context: dict[str, Any] = {"ti": ti, "run_id": "r", "params": {}, "task": operator}
        operator.render_template_fields(context)
        return operator.execute(context)

    return execute
