"""Find the installation that a command is about, and make this process one of its own."""

import configparser
import os
import socket
import sys
from dataclasses import replace
from pathlib import Path

from weir.database.connection import Database
from weir.errors import Conflict
from weir.local.airflow_environment import weir_environment
from weir.local.state_folder import StateFolder
from weir.settings import Settings, config_of, load

PATIENCE = 5.0  # seconds; a person who waits for a database does something about it


def find_settings() -> Settings:
    """Return the settings of the installation here.

    The file is that of WEIR_CONFIG, or `weir.toml` in this folder, in one above it, or in the
    source tree of this program. For an installation on this machine, the environment of its jobs is
    set in this process.
    """
    if "WEIR_CONFIG" not in os.environ and (found := config_of(Path.cwd(), os.geteuid())):
        os.environ["WEIR_CONFIG"] = str(found)
    settings = load()
    if (settings.state / "pg_service.conf").is_file() and settings.database == "service=weir":
        os.environ.update(weir_environment(StateFolder(settings.state)))
        settings = load()  # which may name a Spark now
    # Weir says itself what it does; Spark's bars overwrite the lines of others.
    os.environ.setdefault(
        "PYSPARK_SUBMIT_ARGS", "--conf spark.ui.showConsoleProgress=false pyspark-shell"
    )
    sys.path[:0] = [folder for folder in settings.function_path if folder not in sys.path]
    return settings


def open_database(settings: Settings) -> Database:
    """Return the database of an installation, for which a command waits a few seconds only.

    Raises Conflict if there is no installation here, or its Postgres does not run.
    """
    if settings.database == "service=weir":
        _check_runs(settings.state)
    patience = min(settings.connect_patience, PATIENCE)
    return Database.of(replace(settings, connect_patience=patience))


def _check_runs(state: Path) -> None:
    """Raise Conflict if the database is to be that of a state folder, and does not run."""
    service_file = Path(os.environ.get("PGSERVICEFILE", state / "pg_service.conf"))
    if not service_file.is_file():
        if (Path.home() / ".pg_service.conf").is_file() or "PGSYSCONFDIR" in os.environ:
            return
        raise Conflict(
            "not_started",
            f"there is no installation in {state} yet; start one with `weir up`, or name the "
            "database of another one in weir.toml.",
        )
    if service_file.parent != state:
        return
    services = configparser.ConfigParser()
    services.read(service_file)
    port = services.getint("weir", "port", fallback=0)
    with socket.socket() as probe:
        probe.settimeout(PATIENCE)
        if probe.connect_ex(("127.0.0.1", port)) != 0:
            raise Conflict(
                "not_started",
                f"Postgres of the installation in {state} does not run; start it with `weir up`.",
            )
