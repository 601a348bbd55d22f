"""What a local installation shows to other machines and to other users of this one: nothing."""

import contextlib
import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request

import psutil  # type: ignore[import-untyped]
import pytest

from weir.local import processes
from weir.local.installation import Installation


def _processes(installation: Installation) -> list[psutil.Process]:
    mark = installation.airflow.environment()["WEIR_STACK_ID"]
    return [
        *processes.carrying("WEIR_STACK_ID", mark),
        *processes.working_in(installation.postgres.home / "data"),
    ]


def test_every_process_listens_on_localhost_only(installation: Installation) -> None:
    listening = set()
    for process in _processes(installation):
        with contextlib.suppress(psutil.NoSuchProcess):  # a worker that has ended meanwhile
            listening |= {
                connection.laddr
                for connection in process.net_connections()
                if connection.status == psutil.CONN_LISTEN
            }
    ports = installation.airflow._stack()["ports"]
    assert {address.port for address in listening} >= {*ports.values(), installation.postgres.port}
    # Java writes the address of localhost as one of IPv6.
    assert {address.ip.removeprefix("::ffff:") for address in listening} == {"127.0.0.1"}


def test_the_log_of_a_task_is_shown_while_it_runs(installation: Installation) -> None:
    api = installation.airflow.api()
    run = api.trigger("weir_stream_cuts", run_id="looked-at")
    shown: list[str] = []
    while api.get(f"/dags/weir_stream_cuts/dagRuns/{run}")["state"] in ("queued", "running"):
        for task in api.tasks("weir_stream_cuts", run):
            if task["state"] == "running":
                name = task["task_id"]
                attempt = task["try_number"]
                shown.append(api.task_log("weir_stream_cuts", run, name, try_number=attempt))
    assert not any("Could not read served logs" in text for text in shown)
    server = f"http://127.0.0.1:{installation.airflow._stack()['ports']['log']}/log/dag_id="
    assert any(server in text for text in shown), "no log was shown by the log server"


def test_metrics_are_shown_to_users_of_airflow_and_to_nobody_else(
    installation: Installation,
) -> None:
    api = installation.airflow.api()
    page = f"{api.url}/weir/metrics"
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(page)  # noqa: S310  # http, on this machine
    api.get("/version")
    asked = urllib.request.Request(page, headers={"Authorization": f"Bearer {api._token}"})  # noqa: S310  # the same
    with urllib.request.urlopen(asked) as answer:  # noqa: S310  # the same
        assert b"\nweir_damaged_files 0.0\n" in answer.read()


def test_no_other_user_reads_logs_input_or_state(installation: Installation) -> None:
    for name in ("", "airflow", "logs", "input", "output", "warehouse"):
        folder = installation.state / name
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    logs = list(installation.state.glob("logs/*.log"))
    assert len(logs) == 5
    for path in logs:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_whoever_starts_it_is_told_the_command_that_prints_the_login(
    installation: Installation,
) -> None:
    environ = os.environ | {"WEIR_STATE": str(installation.state)}
    command = [sys.executable, "-m", "weir.local", "up"]  # into a pipe: no terminal
    said = subprocess.run(command, env=environ, capture_output=True, text=True).stdout
    assert f"`make login STATE={installation.state}` prints its password" in said
    assert json.loads(installation.airflow.passwords_file.read_text())["admin"] not in said
    assert f"Input      {installation.state / 'input'}" in said
