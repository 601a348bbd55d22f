"""Build the image of docker-compose.yaml, start its stack, and take a stream through it.

`make test-compose`, or `python -m tests.compose_stack`. Needs a container engine: docker compose,
or podman with podman-compose. Ends with 0 when all is as it should be, with 77 when there is no
engine, else with 1. WEIR_BASE_IMAGE and WEIR_POSTGRES_IMAGE name other images where no registry can
be reached; WEIR_IMAGE one that has been built already, and is taken as it is.
"""

import copy
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg2
import yaml

from tests.compose_file import COMPOSE, RAW, REPOSITORY, make_secrets
from weir.errors import WeirError
from weir.local.airflow_api import AirflowApi
from weir.local.ports import free_port

NOT_TRIED = 77
PATIENCE = 600  # seconds until Airflow works, and for each run
SOURCES = ("dags", "examples", "plugins", "spark_jobs", "sql")
FILES = ("docker-compose.yaml", "requirements.txt", ".dockerignore")
FUNCTION = """
from pyspark.sql import functions as F


def totals(orders):
    return orders.groupBy("customer").agg(F.sum("amount").cast("bigint").alias("amount"))
"""
INPUT = """
import pyarrow as pa, pyarrow.parquet as pq
table = pa.table({"customer": [f"c{n % 7}" for n in range(1000)], "amount": list(range(1000))})
pq.write_table(table, "/srv/weir/input/orders.parquet")
"""
TABLE = """
CREATE SCHEMA reports;
CREATE TABLE reports.totals (customer text, amount bigint);
GRANT USAGE ON SCHEMA reports TO weir_publisher;
GRANT INSERT ON reports.totals TO weir_publisher;
"""


def engine() -> tuple[list[str], str]:
    """Return the command of a Compose that has an engine here; or nothing, and why."""
    reason = "neither docker nor podman-compose is installed"
    for command in (["docker", "compose"], ["podman-compose"]):
        program = "podman" if command[0] == "podman-compose" else "docker"
        if not (shutil.which(command[0]) and shutil.which(program)):
            continue
        for asked in ([*command, "version"], [program, "info"]):
            answer = subprocess.run(asked, capture_output=True, text=True)
            if answer.returncode != 0:
                said = answer.stderr.strip().splitlines() or [f"status {answer.returncode}"]
                reason = f"`{' '.join(asked)}` fails: {said[0].rstrip('.')}"
                break
        else:
            return command, ""
    return [], reason


class Stack:
    """The stack, from a copy of the repository's files, with secrets and ports of its own."""

    def __init__(self, folder: Path, compose: list[str]) -> None:
        for name in SOURCES:
            shutil.copytree(
                REPOSITORY / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        for name in FILES:
            shutil.copy(REPOSITORY / name, folder)
        (folder / "examples" / "shop").mkdir()
        (folder / "examples" / "shop" / "__init__.py").write_text(FUNCTION)
        self.secrets = make_secrets(folder)
        self.ports = {
            name: free_port() for name in ("AIRFLOW_PORT", "WEIR_POSTGRES_PORT", "WEIR_SPARK_PORT")
        }
        module = "airflow.api_fastapi.auth.managers.simple.simple_auth_manager"
        variables = {
            "WEIR_SECRETS": "./secrets",
            "AIRFLOW_AUTH_MANAGER": f"{module}.SimpleAuthManager",
            "WEIR_FUNCTION_PACKAGES": "shop",
            **{name: str(port) for name, port in self.ports.items()},
        }
        for name in ("WEIR_BASE_IMAGE", "WEIR_POSTGRES_IMAGE", "WEIR_IMAGE"):
            if os.environ.get(name):
                variables[name] = os.environ[name]
        lines = "".join(f"{name}={value}\n" for name, value in variables.items())
        (folder / ".env").write_text(lines)
        self._folder = folder
        self._compose = [*compose, "-p", f"weir-test-{os.getpid()}"]

    def compose(self, *arguments: str, check: bool = True, **how: Any) -> None:
        """Run a command of Compose in the folder of the copy."""
        environ = {n: v for n, v in os.environ.items() if not n.startswith(("WEIR_", "AIRFLOW_"))}
        command = [*self._compose, *arguments]
        done = subprocess.run(command, cwd=self._folder, env=environ, **how)
        if check and done.returncode != 0:
            raise WeirError(
                "stack_failed", f"`{' '.join(command)}` failed with status {done.returncode}."
            )

    def set_up(self) -> None:
        """Do what podman-compose does not: mount the configs, and wait for what others wait for."""
        file = copy.deepcopy(RAW)
        (self._folder / "configs").mkdir()
        for name, config in COMPOSE["configs"].items():
            (self._folder / "configs" / name).write_text(config["content"])
        for service in file["services"].values():
            service.pop("depends_on", None)
            service["volumes"] = service.get("volumes", []) + [
                f"./configs/{config['source']}:{config['target']}:ro"
                for config in service.get("configs", [])
            ]
        (self._folder / "docker-compose.yaml").write_text(yaml.safe_dump(file))
        self.compose("up", "-d", "postgres")
        end = time.monotonic() + 120
        while True:
            try:
                self.sql("SELECT 1", "postgres", "postgres")
                break
            except psycopg2.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(1)
        for service in ("logins", "migrate", "airflow-init"):
            self.compose("run", "--rm", "--no-deps", service)

    def api(self) -> AirflowApi:
        """Return the API of Airflow as admin, as soon as all of Airflow works."""
        passwords = json.loads((self.secrets / "airflow_auth").read_text())
        url = f"http://127.0.0.1:{self.ports['AIRFLOW_PORT']}"
        api = AirflowApi(url, "admin", passwords["admin"])
        end = time.monotonic() + PATIENCE
        while True:
            with suppress(WeirError):
                health = api.health()
                parts = ("metadatabase", "scheduler", "dag_processor", "triggerer")
                if all(health[part]["status"] == "healthy" for part in parts):
                    return api
            if time.monotonic() > end:
                raise WeirError("stack_failed", f"Airflow does not work after {PATIENCE} s.")
            time.sleep(2)

    def sql(
        self, statement: str, database: str = "weir", login: str = "weir_owner"
    ) -> list[tuple[Any, ...]]:
        """Run SQL through the port that Postgres has on this machine, and return the rows."""
        connection = psycopg2.connect(
            host="127.0.0.1",
            port=self.ports["WEIR_POSTGRES_PORT"],
            dbname=database,
            user=login,
            password=(self.secrets / login).read_text().strip(),
        )
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetchall() if cursor.description else []
        connection.close()
        return found


@contextmanager
def started(compose: list[str]) -> Iterator[Stack]:
    """Yield the stack, of which nothing is left afterwards but the image."""
    with tempfile.TemporaryDirectory(prefix="weir-compose-") as folder:
        stack = Stack(Path(folder), compose)
        try:
            if not os.environ.get("WEIR_IMAGE"):
                say("building the image")
                stack.compose("build")
            say("starting")
            if compose[0] == "podman-compose":
                stack.set_up()
            stack.compose("up", "-d")
            yield stack
        except Exception:
            stack.compose("ps", check=False)
            stack.compose("logs", "--tail", "40", check=False)
            raise
        finally:
            stack.compose("down", "-v", check=False)


def run(stack: Stack) -> None:
    """Create, append, and process into a table, whose rows Spark's executors write."""
    api = stack.api()
    say("Airflow works")
    stack.compose("exec", "-T", "scheduler", "python", "-c", INPUT)
    stack.sql(TABLE)
    stream = "shop/orders"
    for dag, form in (
        ("weir_create_stream", {"stream": stream, "routing_key": "customer", "segments": 2}),
        ("weir_ingest", {"stream": stream, "files": ["orders.parquet"]}),
        ("weir_create_reader_group", {"reader_group": "totals", "streams": [stream]}),
        (
            "weir_process",
            {
                "reader_group": "totals",
                "function": "shop:totals",
                "outputs": ["table:reports.totals"],
            },
        ),
    ):
        state = api.wait(dag, api.trigger(dag, form), timeout=PATIENCE)
        if state != "success":
            raise WeirError("stack_failed", f"{dag} ended as {state}.")
        say(f"{dag}: {state}")
    found = stack.sql("SELECT count(DISTINCT customer), sum(amount) FROM reports.totals")
    if found != [(7, sum(range(1000)))]:
        raise WeirError(
            "stack_failed",
            f"reports.totals should hold 7 customers and {sum(range(1000))}: {found}.",
        )


def say(line: str) -> None:
    """Print one line of progress."""
    print(f"test-compose: {line}", flush=True)


def main() -> int:
    """Try the stack, and return the exit status."""
    compose, reason = engine()
    if not compose:
        say(f"nothing is tried, as no container engine runs here ({reason}).")
        return NOT_TRIED
    try:
        with started(compose) as stack:
            run(stack)
    except WeirError as error:
        say(str(error))
        return 1
    say("the stack starts, appends and processes, and is gone again")
    return 0


if __name__ == "__main__":
    sys.exit(main())
