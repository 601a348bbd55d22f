"""The environment variables of Weir's own processes on one machine, and of its Airflow."""

import json
import os
import sys
from pathlib import Path

from weir import settings
from weir.local.spark_address import spark_environment
from weir.local.spark_start import spark_start
from weir.local.state_folder import StateFolder
from weir.source_tree import LIBRARY, REPOSITORY, beside

# Hides a warning about a call of Airflow's own, with which each task's log would begin.
_QUIET = "ignore:GitWildMatchPattern:DeprecationWarning"
EXAMPLES = beside("examples") / "example_dags"
_LOCAL = "airflow.dag_processing.bundles.local.LocalDagBundle"
_BUNDLES = json.dumps(
    [
        {"name": "dags-folder", "classpath": _LOCAL, "kwargs": {}},
        {"name": "weir-examples", "classpath": _LOCAL, "kwargs": {"path": str(EXAMPLES)}},
    ]
)
_SPARK = {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}


def weir_environment(state: StateFolder) -> dict[str, str]:
    """Return the variables with which a job or a script finds this installation, its database and
    Spark."""
    environ = {
        "WEIR_STATE": str(state.path),
        "PGSERVICEFILE": str(state.path / "pg_service.conf"),
        "PGPASSFILE": str(state.path / "pgpass"),
        # Not resolved: the bin folder of the virtual environment, where spark-submit lies.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "NO_PROXY": _without_proxy(),
        "no_proxy": _without_proxy(),
    }
    # By name: a task may run in another folder than we do.
    if "WEIR_CONFIG" in os.environ or Path("weir.toml").is_file():
        environ["WEIR_CONFIG"] = os.path.abspath(os.environ.get("WEIR_CONFIG", "weir.toml"))
    known = settings.load(dict(os.environ) | environ)  # also for its refusals
    # An empty entry would be the current folder. Jobs find functions by their settings.
    folders = [str(LIBRARY.parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, folders)))
    # A cluster's own configuration and connection are left alone.
    name = "AIRFLOW_CONN_SPARK_DEFAULT"
    environ[name] = os.environ.get(name, json.dumps(_SPARK))
    return environ | spark_start(os.environ) | spark_environment(state, known)


def airflow_environment(
    state: StateFolder, dags: Path, ports: dict[str, int], stack_id: str, examples: bool
) -> dict[str, str]:
    """Return the whole environment of Airflow's components. `ports` has those of api and log.
    `examples`: whether it has the example DAGs, beside those of the folder."""
    home = state.path / "airflow"
    url = f"http://127.0.0.1:{ports['api']}"
    return {
        **os.environ,
        **weir_environment(state),
        "WEIR_STACK_ID": stack_id,
        "SPT_NOENV": "1",  # setproctitle would overwrite the environment, which we search
        "PYTHONWARNINGS": ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _QUIET])),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        **({"AIRFLOW__CORE__PLUGINS_FOLDER": str(REPOSITORY / "plugins")} if REPOSITORY else {}),
        **({"AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": _BUNDLES} if examples else {}),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # A task that runs when Airflow is stopped continues as a retry at the next start.
        "AIRFLOW__CORE__DEFAULT_TASK_RETRIES": "3",
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "10",
        "AIRFLOW__CORE__EXECUTOR": "weir.airflow.executor.LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__FERNET_KEY": state.secret("fernet", 32) + "=",
        # Without this setting tasks call port 8080, whatever the port of the api-server is.
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": "admin:admin,viewer:viewer",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home / "passwords.json"),
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(ports["api"]),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": state.secret("api", 64),
        "AIRFLOW__API_AUTH__JWT_SECRET": state.secret("jwt", 64),
        # The service file lets Airflow find Postgres when it restarts on another port.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": "postgresql+psycopg2:///?service=airflow",
        # Empty, because the one REST call that waits for a run would need another driver.
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN_ASYNC": "",
        "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "10",
        # New and changed files are read at once, and all again for the names that forms suggest.
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "60",
        # One log server for both, on localhost: Airflow's own ones listen on all addresses.
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(ports["log"]),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(ports["log"]),
        "AIRFLOW__CORE__HOSTNAME_CALLABLE": "weir.local.hostname.hostname",
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FOLDER_PERMISSIONS": "0o700",
        "AIRFLOW__LOGGING__FILE_TASK_HANDLER_NEW_FILE_PERMISSIONS": "0o600",
        # A task gives up after five requests in vain, before its own code has begun. The API server
        # of a busy machine may need longer than 5 seconds for the first one.
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "30",
        # Each round costs 20 ms of a core, also where nothing happens.
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    }


def _without_proxy() -> str:
    given = os.environ.get("NO_PROXY") or os.environ.get("no_proxy") or ""
    return ",".join(dict.fromkeys([*filter(None, given.split(",")), "localhost", "127.0.0.1"]))
