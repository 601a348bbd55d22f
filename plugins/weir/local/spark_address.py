"""Where the Spark Connect server of a state folder is, for whoever looks for it without running it,
which needs no psutil."""

import os
from typing import Any

from weir import settings
from weir.local.state_folder import StateFolder

GIVEN_BY = "SPARK_CONNECT_AUTHENTICATE_TOKEN"  # the variable with the token


def known(state: StateFolder) -> dict[str, Any]:
    """Return what the state folder says of its server. Port 0: jobs are to find none."""
    return {"port": 0, "pid": 0, "idle": 0.0} | state.read("spark.json")


def address(port: int) -> str:
    """Return what the setting `spark` of jobs is."""
    return f"sc://localhost:{port}"


def is_named(state: StateFolder, given: settings.Settings) -> bool:
    """Return whether settings name the server of a state folder."""
    port = known(state)["port"]
    return bool(port) and given.spark == address(port)


def spark_environment(state: StateFolder, given: settings.Settings) -> dict[str, str]:
    """Return the variables with which a job finds the server of a state folder; none if it wants
    none, or if the settings name another."""
    port = known(state)["port"]
    if not port:
        return {}
    token = state.secret("spark")
    if given.spark and os.environ.get(GIVEN_BY) != token:
        return {}
    return {"WEIR_SPARK": address(port), GIVEN_BY: token}
