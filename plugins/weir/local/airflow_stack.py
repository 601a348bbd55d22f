"""Airflow on one machine: its processes, each in a session of its own, all on localhost.

Every process, down to the JVMs of tasks, has WEIR_STACK_ID in its environment. So processes that
outlive their parents can be found and stopped.
"""

import json
import logging
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import TypedDict

import psutil  # type: ignore[import-untyped]

from weir import settings
from weir.errors import NotFound, Unavailable, WeirError
from weir.local import airflow_environment, ports, processes
from weir.local.airflow_api import AirflowApi
from weir.local.spark_address import GIVEN_BY
from weir.local.state_folder import StateFolder

log = logging.getLogger("weir.local")

# component: its key in the health answer, and the name of its heartbeat there
COMPONENTS = {
    "api-server": None,
    "scheduler": ("scheduler", "latest_scheduler_heartbeat"),
    "dag-processor": ("dag_processor", "latest_dag_processor_heartbeat"),
    "triggerer": ("triggerer", "latest_triggerer_heartbeat"),
    "log-server": None,
}
# This replaces the log servers of Airflow, which listen on all addresses of the machine.
_LOG_SERVER = "airflow.utils.serve_logs.log_server:get_app"
_WITHOUT_ITS_OWN = {"scheduler": ["--skip-serve-logs"], "triggerer": ["--skip-serve-logs"]}
# port: the component that listens there, and the preferred number
_PORTS = {"api": ("api-server", 8080), "log": ("log-server", 8793)}
_POOL = {"name": "weir", "slots": 4, "description": "Weir's jobs", "include_deferred": False}
_PATIENCE = 180.0  # for a slow and busy machine; 10 s are usual


class _Stack(TypedDict):
    pids: dict[str, int]
    ports: dict[str, int]
    examples: bool
    migrated: str  # the version whose tables were made


class AirflowStack:
    """The Airflow of one state folder. Each process may call `start` and `stop`, repeatedly.

    `examples`: whether it has the example DAGs from its next start on; None: as before.
    """

    def __init__(self, state: StateFolder, dags: Path, examples: bool | None = None) -> None:
        self._state = state
        self._dags = dags.absolute()
        self._wanted = examples
        self._id = f"{state.identity}-airflow"

    def start(self) -> None:
        """Start the components that do not run, and wait until all are healthy. Postgres must
        run."""
        with self._state.lock("airflow"), ports.reserving() as reserve:
            missing = [name for name in COMPONENTS if not self._main(name)]
            if self.examples != self._stack()["examples"]:
                self._end_all(5)  # what runs reads other DAGs
                self._remember(examples=self.examples)
                missing = list(COMPONENTS)
            try:
                if missing:
                    self._end_remains(missing)
                    self._write_logins()
                    missing = self._choose_ports(missing, reserve)
                    self._migrate()
                    log.info("starting Airflow: %s", ", ".join(missing))
                    for name in missing:
                        self._launch(name)
                self._wait_until_healthy(set(missing))
                self._make_pool()
            except BaseException:
                if missing:
                    with processes.uninterrupted():
                        self._end_all(5)
                raise

    def stop(self) -> None:
        """Stop all components with their tasks and JVMs, and make sure that no process is left."""
        with self._state.lock("airflow"):
            # The api-server is stopped last, because tasks report to it how they ended.
            mains = [self._main(name) for name in COMPONENTS if name != "api-server"]
            processes.end([main for main in mains if main], 5)
            api = self._main("api-server")
            processes.end([process for process in self._ours() if process != api], 5)
            self._end_all(5)

    def running(self) -> dict[str, int | None]:
        """Return the pid of each component, or None if it does not run."""
        mains = {name: self._main(name) for name in COMPONENTS}
        return {name: main.pid if main else None for name, main in mains.items()}

    @property
    def url(self) -> str:
        """Return the URL of the UI and the REST API."""
        return f"http://127.0.0.1:{self._stack()['ports']['api']}"

    @property
    def examples(self) -> bool:
        """Return whether it has the example DAGs."""
        return self._stack()["examples"] if self._wanted is None else self._wanted

    @property
    def passwords_file(self) -> Path:
        """Return the JSON file with the passwords of the users `admin` and `viewer`."""
        return self._state.path / "airflow" / "passwords.json"

    def api(self, username: str = "admin") -> AirflowApi:
        """Return a client of the REST API as one of the two users."""
        return AirflowApi(self.url, username, json.loads(self.passwords_file.read_text())[username])

    def log_file(self, component: str) -> Path:
        """Return the file to which a component prints."""
        return self._state.log_file(component)

    def environment(self) -> dict[str, str]:
        """Return the whole environment of the components, also for `airflow` on the command
        line."""
        return airflow_environment.airflow_environment(
            self._state, self._dags, self._stack()["ports"], self._id, self.examples
        )

    def _stack(self) -> _Stack:
        usual = {name: port for name, (_, port) in _PORTS.items()}
        known = self._state.read("stack.json")
        chosen = {name: port for name, port in known.get("ports", {}).items() if name in usual}
        return _Stack(
            pids=known.get("pids", {}), ports=usual | chosen,
            examples=known.get("examples", False), migrated=known.get("migrated", ""),
        )  # fmt: skip

    def _remember(self, **values: object) -> None:
        self._state.write("stack.json", {**self._stack(), **values})

    def _ours(self) -> list[psutil.Process]:
        return processes.carrying("WEIR_STACK_ID", self._id)

    def _main(self, name: str) -> psutil.Process | None:
        """Return the main process of a component if it lives. Its pid may belong to another process
        by now."""
        pid = self._stack()["pids"].get(name)
        return next((process for process in self._ours() if process.pid == pid), None)

    def _end_all(self, patience: float) -> None:
        processes.end(self._ours(), patience)
        processes.kill(self._ours)

    def _end_remains(self, missing: list[str]) -> None:
        """Stop what killed components left, because it holds their ports and continues their
        tasks."""
        mains = [self._main(name) for name in COMPONENTS if name not in missing]
        kept = [one for main in mains if main for one in (main, *main.children(recursive=True))]
        processes.kill(lambda: [process for process in self._ours() if process not in kept])

    def _write_logins(self) -> None:
        """Write the passwords, because Airflow would otherwise make its own and print them to its
        log."""
        if not self.passwords_file.exists():
            passwords = {name: secrets.token_urlsafe(12) for name in ("admin", "viewer")}
            self._state.write("airflow/passwords.json", passwords)

    def _choose_ports(self, missing: list[str], reserve: Callable[[int], int]) -> list[str]:
        """Choose free ports for the components to start. Return the components to start."""
        known: dict[str, int] = self._stack()["ports"]
        chosen = {
            name: reserve(port) if _PORTS[name][0] in missing else port
            for name, port in known.items()
        }
        if chosen == known:
            return missing
        for name, port in known.items():
            if chosen[name] != port:
                log.warning(
                    "port %d is taken: Airflow's %s listens on %d instead",
                    port,
                    _PORTS[name][0],
                    chosen[name],
                )
        self._end_all(5)  # components that still run use the old ports
        self._remember(ports=chosen)
        return list(COMPONENTS)

    def _migrate(self) -> None:
        version = metadata.version("apache-airflow")
        if self._stack()["migrated"] == version:
            return
        log.info("making Airflow's tables")
        done = subprocess.run(
            [sys.executable, "-P", "-m", "airflow", "db", "migrate"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise WeirError(
                "setup_failed",
                "`airflow db migrate` failed; correct what it says, and run `weir up` again:\n"
                f"{_tail(done.stdout + done.stderr)}",
            )
        self._remember(migrated=version)

    def _launch(self, name: str) -> None:
        with self._state.open_log(name) as output:
            process = subprocess.Popen(
                self._command(name),
                env=self._environment_of(name),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C must reach only us; we stop them in order
            )
        processes.appear(process)
        self._remember(pids=self._stack()["pids"] | {name: process.pid})

    def _environment_of(self, name: str) -> dict[str, str]:
        """Return the environment of a component. The triggerer, where triggers of others run, too,
        may do no more than to watch streams, and the API server no more than to read views."""
        environ = self.environment()
        service = {"triggerer": "weir_watcher", "api-server": "weir_reader"}.get(name)
        if name != "scheduler":  # whose children tasks are
            environ = {one: environ[one] for one in environ if one not in ("WEIR_SPARK", GIVEN_BY)}
        if service and settings.load(environ).database == settings.Settings.database:
            environ["WEIR_DATABASE"] = f"service={service}"
        return environ

    def _command(self, name: str) -> list[str]:
        if name != "log-server":
            return [sys.executable, "-P", "-m", "airflow", name, *_WITHOUT_ITS_OWN.get(name, [])]
        where = ["--host", "127.0.0.1", "--port", str(self._stack()["ports"]["log"])]
        return [
            sys.executable,
            "-P",
            "-m",
            "uvicorn",
            *where,
            "--no-access-log",
            "--factory",
            _LOG_SERVER,
        ]

    def _wait_until_healthy(self, launched: set[str]) -> None:
        """Wait for all components, of which some were launched just now. Launch another that exits
        once: it was about to when it was looked at, such as a scheduler whose Postgres was
        killed."""
        begun = time.monotonic()
        next_word = 5.0
        api = self.api()
        while True:
            mains = {name: self._main(name) for name in COMPONENTS}
            waited = time.monotonic() - begun
            for name, main in mains.items():
                if main is None and name not in launched:
                    log.info("starting Airflow: %s", name)
                    self._end_remains([name])
                    self._launch(name)
                    launched.add(name)
                    mains[name] = self._main(name)
                elif main is None:
                    raise Unavailable(
                        "airflow_unavailable",
                        f"Airflow's {name} exited; correct what its log says, and run `weir up` "
                        f"again. {self._state.last_words(name)}",
                    )
            unhealthy = _unhealthy(
                api, {name: main.create_time() for name, main in mains.items() if main}
            )
            if not unhealthy:
                log.info("Airflow works (%.0f s)", waited)
                return
            if waited > _PATIENCE:
                name = unhealthy[0]
                raise Unavailable(
                    "airflow_unavailable",
                    f"Airflow's {name} is not ready after {waited:.0f} s; correct what its log "
                    f"says, or run `weir up` again. {self._state.last_words(name)}",
                )
            if waited > next_word:
                log.info("  waiting for %s (%.0f s)", ", ".join(unhealthy), waited)
                next_word += 5
            time.sleep(0.2)

    def _make_pool(self) -> None:
        api = self.api()
        try:
            api.get(f"/pools/{_POOL['name']}")
        except NotFound:
            api.post("/pools", _POOL)


def _unhealthy(api: AirflowApi, since: dict[str, float]) -> list[str]:
    """Return the components that are not healthy. A heartbeat from before `since` is another
    process's."""
    try:
        answer = api.health()
    except WeirError:
        return list(COMPONENTS)
    unhealthy = []
    for name, beats in COMPONENTS.items():
        status = answer.get(beats[0] if beats else "metadatabase") or {}
        beat = status.get(beats[1]) if beats else None
        stale = beats and (beat is None or datetime.fromisoformat(beat).timestamp() < since[name])
        if status.get("status") != "healthy" or stale:
            unhealthy.append(name)
    return unhealthy


def _tail(text: str, lines: int = 30) -> str:
    return "\n".join(text.splitlines()[-lines:])
