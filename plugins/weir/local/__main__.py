"""`python -m weir.local up|down|status|login|psql|clean`: run Weir on this machine, in one folder.

The folder is the setting `state` (WEIR_STATE; default .weir).
"""

import argparse
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from weir import settings
from weir.errors import Conflict, InvalidInput, WeirError
from weir.local import binaries
from weir.local.installation import Installation
from weir.local.logins import SERVICES
from weir.source_tree import beside

Typed = Callable[..., str]


def by_make(target: str, **options: str) -> str:
    """Return a command for this installation, as a person types it."""
    state = os.environ.get("WEIR_STATE", ".weir")
    options |= {"state": state} if state != ".weir" else {}
    return " ".join(["make", target, *(f"{name.upper()}={options[name]}" for name in options)])


def by_weir(target: str, **options: str) -> str:
    """Return the same of `weir`, which is typed in the same folder and environment."""
    return " ".join(["weir", target, *(f"--{name} {options[name]}" for name in options)])


def up(
    installation: Installation, typed: Typed, with_airflow: bool = True, spark: bool | None = None
) -> int:
    """Start what does not run yet, and print the URLs."""
    if spark is None and with_airflow and not installation.spark.decided:
        spark = True if not settings.load().spark else None  # else they name another
    if spark is not None:
        installation.spark.want(spark)
    if with_airflow:
        installation.start()
    else:
        installation.start_postgres()
        installation.make_data_folders()
    postgres, airflow = installation.postgres, installation.airflow
    known = settings.load(dict(os.environ) | installation.environment())
    at = "not started"
    if with_airflow:
        at = f"{airflow.url}   login admin; `{typed('login')}` prints its password"
        if sys.stdout.isatty():  # not into the log of a CI
            at = f"{airflow.url}   login admin / {_passwords(installation, typed)['admin']}"
    shared = ""
    if port := installation.spark.port:
        when = "" if installation.spark.running() else "   when a job needs it"
        shared = f"  Spark      sc://localhost:{port}{when}\n"
    examples = "with example DAGs (tag example)   " if airflow.examples else ""
    print(
        f"Weir is up.\n"
        f"  Airflow    {examples}{at}\n"
        f"  Postgres   host=127.0.0.1 port={postgres.port} dbname=weir user=weir_view"
        f"   (passwords: {installation.state / 'pgpass'})\n"
        f"{shared}  State      {installation.state}\n"
        f"  Input      {known.input_roots[0]}\n"
        f"  Database   {postgres.home}\n"
        f"  Logs       {airflow.log_file('*')}\n"
        f"`{typed('psql')}` opens the database; `{typed('down')}` stops it all and keeps the data."
    )
    return 0


def down(installation: Installation, typed: Typed) -> int:
    """Stop Airflow and Postgres, and print which runs were interrupted."""
    under_way: list[str] = []
    if installation.state.is_dir():
        # It may not answer, which may be why somebody stops it.
        with contextlib.suppress(WeirError, OSError):
            if installation.airflow.running()["api-server"]:
                under_way = installation.airflow.api().under_way()
        installation.stop()
    if under_way:
        print(f"Interrupted, to be continued by the next `{typed('up')}`: {', '.join(under_way)}.")
    print(f"No process of {installation.state} runs.")
    return 0


def status(installation: Installation) -> int:
    """Print what runs. Return 0 if everything runs."""
    running = {"postgres": installation.postgres.running(), **installation.airflow.running()}
    if installation.spark.wanted:
        running["spark"] = installation.spark.running()
    for name, found in running.items():
        print(f"{name:14} {'runs' if found else 'does not run'}")
    return 0 if all(running.values()) else 1


def login(installation: Installation, typed: Typed) -> int:
    """Print where to log in, with passwords."""
    postgres, airflow = installation.postgres, installation.airflow
    passwords = _passwords(installation, typed)
    users = "   ".join(f"{name} / {password}" for name, password in passwords.items())
    reader = SERVICES["weir_reader"][1]
    password = postgres.state.secret(reader)
    print(f"Airflow    {airflow.url}   {users}")
    print(f"Postgres   postgresql://{reader}:{password}@127.0.0.1:{postgres.port}/weir")
    return 0


def _passwords(installation: Installation, typed: Typed) -> dict[str, str]:
    """Return the passwords of Airflow's users, by user."""
    try:
        found: dict[str, str] = json.loads(installation.airflow.passwords_file.read_text())
    except FileNotFoundError:
        raise Conflict(
            "not_started",
            f"there is no Airflow in {installation.state} yet; create it with `{typed('up')}`.",
        ) from None
    return found


# The roles of psql: the service of each, and what it is for.
ROLES = {"reader": "weir_reader", "jobs": "weir", "owner": "weir_owner"}


def psql(installation: Installation, typed: Typed, role: str, arguments: list[str]) -> int:
    """Open psql on the database. Postgres is started for it if necessary, and stopped
    afterwards."""
    postgres = installation.postgres
    before = postgres.running()
    if not before:
        installation.start_postgres()
    try:
        service = ROLES[role]
        owner = typed("psql", role="owner")
        may = "" if role != "reader" else f"; it reads views, `{owner}` may do all"
        print(
            f"host=127.0.0.1 port={postgres.port} dbname=weir user={SERVICES[service][1]}"
            f"   (password: in {installation.state / 'pgpass'}{may})",
            file=sys.stderr,
        )
        environ = os.environ | installation.environment() | {"PGOPTIONS": "-c search_path=weir"}
        program = str(binaries.wheel() / "bin" / "psql")
        command = [program, *arguments, f"service={service}"]
        # In psql, Ctrl-C cancels a statement, so we ignore it. (psql does not inherit a handler.)
        signal.signal(signal.SIGINT, lambda *_: None)
        return subprocess.run(command, env=environ).returncode
    finally:
        if not before:
            postgres.stop()


def clean(installation: Installation, yes: bool) -> int:
    """Stop everything and delete the installation with its streams. Asks first, unless `yes`.

    Raises InvalidInput if the folder is not one of Weir, or if there is nobody to ask."""
    state = installation.state
    if not state.exists():
        print(f"There is no {state}.")
        return 0
    if not (state / "postgres.lock").is_file():
        raise InvalidInput(
            "argument_invalid",
            f"{state} is not a state folder of Weir, so nothing was removed; check the path.",
        )
    named = " and ".join(map(str, installation.folders()))
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(
                "argument_missing",
                f"{named} would be deleted for good; confirm with YES=1 (or --yes).",
            )
        if input(f"Remove {named} with all streams in it? [y/N] ").strip().lower() != "y":
            print("Nothing was removed.")
            return 0
    installation.remove()
    print(f"Removed {named}.")
    return 0


def main(argv: Sequence[str] | None = None, typed: Typed = by_make) -> int:
    """Run the command line and return its exit status. `typed`: how a person types a command."""
    of_weir = typed is by_weir
    parser = argparse.ArgumentParser(
        prog="weir" if of_weir else "python -m weir.local", description=__doc__
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for command in (up, down, status, login):
        commands.add_parser(command.__name__, help=command.__doc__)
    commands.choices["up"].add_argument(
        "--dags", type=Path, default=beside("dags"), help="the folder of the DAGs"
    )
    which = commands.choices["up"].add_mutually_exclusive_group()
    which.add_argument(
        "--no-airflow", action="store_true", help="start Postgres only, which `weir` needs"
    )
    which.add_argument(
        "--examples", action=argparse.BooleanOptionalAction,
        help="let Airflow have the example DAGs, too, from now on",
    )  # fmt: skip
    commands.choices["up"].add_argument(
        "--spark", action=argparse.BooleanOptionalAction,
        help="whether jobs share a Spark, from now on (with Airflow they do); without Airflow the "
        "first job that needs it starts it",
    )  # fmt: skip
    # Unknown options are passed on to psql, so abbreviations of our own are not accepted.
    commands.add_parser("psql", help=psql.__doc__, add_help=False, allow_abbrev=False)
    commands.choices["psql"].add_argument("--role", choices=ROLES, default="reader")
    commands.add_parser("clean", help=clean.__doc__).add_argument("--yes", action="store_true")
    given, others = parser.parse_known_args(argv)
    if others and given.command != "psql":
        commands.choices[given.command].error(f"unrecognized arguments: {' '.join(others)}")

    logging.basicConfig(level=logging.WARNING, format="weir: %(message)s", stream=sys.stderr)
    logging.getLogger("weir").setLevel(logging.INFO)
    # Treat SIGTERM like Ctrl-C: stop what was started.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    try:
        state = settings.load().state
        if given.command == "up":
            found = Installation(state, dags=given.dags, examples=given.examples)
            return up(found, typed, not given.no_airflow, given.spark)
        installation = Installation(state)
        if given.command == "psql":
            return psql(installation, typed, given.role, others)
        if given.command == "clean":
            return clean(installation, given.yes)
        if given.command == "status":
            return status(installation)
        return {"down": down, "login": login}[given.command](installation, typed)
    except WeirError as error:
        print(f"weir: {error}", file=sys.stderr)
    except PermissionError as error:
        owner = Conflict(
            "not_permitted", f"{error.filename} belongs to another user; run this as that user."
        )
        print(f"weir: {owner}", file=sys.stderr)
    except KeyboardInterrupt:
        print("weir: interrupted", file=sys.stderr)
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
