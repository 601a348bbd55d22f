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
