"""Airflow on one machine: its processes, each in a session of its own, all of them on localhost.

Every process of it, down to the JVMs of its tasks, carries WEIR_STACK_ID in its environment: that
is how those that outlive their parents are found and ended.
"""

import json
import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from weir.errors import NotFound, Unavailable, WeirError
from weir.local import airflow_environment, ports, processes
from weir.local.airflow_api import AirflowApi
from weir.local.state_folder import StateFolder

log = logging.getLogger("weir.local")

# component: where the health answer has it, and under which name its heartbeat
COMPONENTS = {
    "api-server": None,
    "scheduler": ("scheduler", "latest_scheduler_heartbeat"),
    "dag-processor": ("dag_processor", "latest_dag_processor_heartbeat"),
    "triggerer": ("triggerer", "latest_triggerer_heartbeat"),
    "log-server": None,
}
# Instead of the log servers that Airflow would start, which listen on all addresses of the machine.
_LOG_SERVER = "airflow.utils.serve_logs.log_server:get_app"
_WITHOUT_ITS_OWN = {"scheduler": ["--skip-serve-logs"], "triggerer": ["--skip-serve-logs"]}
# port: who listens there, and where if nobody else does
_PORTS = {"api": ("api-server", 8080), "log": ("log-server", 8793)}
_POOL = {"name": "weir", "slots": 4, "description": "Weir's jobs", "include_deferred": False}
_PATIENCE = 180.0  # for a slow machine that does other things; 10 s are usual


class AirflowStack:
    """The Airflow of one state folder. `start` and `stop` may be repeated, by any process."""

    def __init__(self, state: StateFolder, dags: Path) -> None:
        self._state = state
        self._dags = dags.absolute()
        self._id = f"{state.identity}-airflow"

    def start(self) -> None:
        """Start what does not run, and wait until all of it works. Needs Postgres."""
        with self._state.lock("airflow"), ports.reserving() as reserve:
            missing = [name for name in COMPONENTS if not self._main(name)]
            try:
                if missing:
                    self._end_remains(missing)
                    self._write_logins()
                    missing = self._choose_ports(missing, reserve)
                    self._migrate()
                    log.info("starting Airflow: %s", ", ".join(missing))
                    for name in missing:
                        self._launch(name)
                self._wait_until_healthy()
                self._make_pool()
            except BaseException:
                if missing:
                    with processes.uninterrupted():
                        self._end_all(5)
                raise

    def stop(self) -> None:
        """End all of it, tasks and their JVMs included, and see to it that nothing is left."""
        with self._state.lock("airflow"):
            # The api-server comes last: tasks that are ended report to it how they ended.
            mains = [self._main(name) for name in COMPONENTS if name != "api-server"]
            processes.end([main for main in mains if main], 5)
            api = self._main("api-server")
            processes.end([process for process in self._ours() if process != api], 5)
            self._end_all(5)

    def running(self) -> dict[str, int | None]:
        """The pid of each component, or None."""
        mains = {name: self._main(name) for name in COMPONENTS}
        return {name: main.pid if main else None for name, main in mains.items()}

    @property
    def url(self) -> str:
        """Where the UI and the REST API are."""
        return f"http://127.0.0.1:{self._stack()['ports']['api']}"

    @property
    def passwords_file(self) -> Path:
        """JSON: the passwords of the users `admin` and `viewer`."""
        return self._state.path / "airflow" / "passwords.json"

    def api(self, username: str = "admin") -> AirflowApi:
        """The REST API as one of the two users."""
        return AirflowApi(self.url, username, json.loads(self.passwords_file.read_text())[username])

    def log_file(self, component: str) -> Path:
        """What a component prints."""
        return self._state.path / "logs" / f"{component}.log"

    def environment(self) -> dict[str, str]:
        """The whole environment of the components: also for `airflow` on the command line."""
        return airflow_environment.airflow_environment(
            self._state, self._dags, self._stack()["ports"], self._id
        )

    def _stack(self) -> dict[str, Any]:
        usual = {name: port for name, (_, port) in _PORTS.items()}
        known = {"pids": {}} | self._state.read("stack.json")
        chosen = {name: port for name, port in known.get("ports", {}).items() if name in usual}
        return known | {"ports": usual | chosen}

    def _remember(self, **values: Any) -> None:
        self._state.write("stack.json", self._stack() | values)

    def _ours(self) -> list[Any]:
        return processes.carrying("WEIR_STACK_ID", self._id)

    def _main(self, name: str) -> Any:
        """The main process of a component, if it lives (its pid may be another process by now)."""
        pid = self._stack()["pids"].get(name)
        return next((process for process in self._ours() if process.pid == pid), None)

    def _end_all(self, patience: float) -> None:
        processes.end(self._ours(), patience)
        processes.kill(self._ours)

    def _end_remains(self, missing: list[str]) -> None:
        """End what killed components left: it holds their ports, and runs their tasks on."""
        mains = [self._main(name) for name in COMPONENTS if name not in missing]
        kept = [process for main in mains for process in (main, *main.children(recursive=True))]
        processes.kill(lambda: [process for process in self._ours() if process not in kept])

    def _write_logins(self) -> None:
        """Airflow would make passwords itself, and print them to its log."""
        if not self.passwords_file.exists():
            passwords = {name: secrets.token_urlsafe(12) for name in ("admin", "viewer")}
            self._state.write("airflow/passwords.json", passwords)

    def _choose_ports(self, missing: list[str], reserve: Callable[[int], int]) -> list[str]:
        """Choose free ports for what is to be started; return what that is."""
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
        self._end_all(5)  # whatever still runs was told the old ports
        self._remember(ports=chosen)
        return list(COMPONENTS)

    def _migrate(self) -> None:
        version = metadata.version("apache-airflow")
        if self._stack().get("migrated") == version:
            return
        log.info("making Airflow's tables")
        done = subprocess.run(
            [sys.executable, "-m", "airflow", "db", "migrate"],
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise WeirError(
                "airflow_migration_failed",
                f"`airflow db migrate` failed:\n{_tail(done.stdout + done.stderr)}",
            )
        self._remember(migrated=version)

    def _launch(self, name: str) -> None:
        self._state.folder("logs")
        with open(self.log_file(name), "ab", opener=_private) as output:
            process = subprocess.Popen(
                self._command(name),
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for us, who then stop them in order
            )
        self._remember(pids=self._stack()["pids"] | {name: process.pid})

    def _command(self, name: str) -> list[str]:
        if name != "log-server":
            return [sys.executable, "-m", "airflow", name, *_WITHOUT_ITS_OWN.get(name, [])]
        where = ["--host", "127.0.0.1", "--port", str(self._stack()["ports"]["log"])]
        return [
            sys.executable,
            "-m",
            "uvicorn",
            *where,
            "--no-access-log",
            "--factory",
            _LOG_SERVER,
        ]

    def _wait_until_healthy(self) -> None:
        begun = time.monotonic()
        next_word = 5.0
        api = self.api()
        while True:
            mains = {name: self._main(name) for name in COMPONENTS}
            waited = time.monotonic() - begun
            for name, main in mains.items():
                if main is None:
                    raise Unavailable(
                        "airflow_unavailable",
                        f"Airflow's {name} exited. {self._last_words(name)}",
                    )
            unhealthy = _unhealthy(api, {name: main.create_time() for name, main in mains.items()})
            if not unhealthy:
                log.info("Airflow works (%.0f s)", waited)
                return
            if waited > _PATIENCE:
                name = unhealthy[0]
                raise Unavailable(
                    "airflow_unavailable",
                    f"Airflow's {name} is not ready after {waited:.0f} s. {self._last_words(name)}",
                )
            if waited > next_word:
                log.info("  waiting for %s (%.0f s)", ", ".join(unhealthy), waited)
                next_word += 5
            time.sleep(0.2)

    def _last_words(self, name: str) -> str:
        path = self.log_file(name)
        return f"The end of {path}:\n{_tail(path.read_text(errors='replace'))}"

    def _make_pool(self) -> None:
        api = self.api()
        try:
            api.get(f"/pools/{_POOL['name']}")
        except NotFound:
            api.post("/pools", _POOL)


def _unhealthy(api: AirflowApi, since: dict[str, float]) -> list[str]:
    """The components that don't work; a heartbeat from before `since` was another process's."""
    try:
        answer = api.health()
    except WeirError:
        return list(COMPONENTS)
    unhealthy = []
    for name, place in COMPONENTS.items():
        status = answer.get(place[0] if place else "metadatabase") or {}
        beat = status.get(place[1]) if place else None
        stale = place and (beat is None or datetime.fromisoformat(beat).timestamp() < since[name])
        if status.get("status") != "healthy" or stale:
            unhealthy.append(name)
    return unhealthy


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)


def _tail(text: str, lines: int = 30) -> str:
    return "\n".join(text.splitlines()[-lines:])
