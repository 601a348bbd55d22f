"""`weir doctor`: check what an installation needs, and say what to do about what is missing."""

import argparse
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pyarrow.fs import FileType

from weir.errors import WeirError
from weir.operations.examination import Check, examine, not_writable, troubles, wrong
from weir.operations.jobs import ACTIONS
from weir.settings import Settings
from weir.spark.base.java import find_java
from weir.terminal.doctor_cluster import check_cluster, use_named_master
from weir.terminal.find_installation import open_database
from weir.terminal.printing import print_json
from weir.warehouse.filesystem import filesystem, needs_hadoop

# Of Hadoop, for one address that does not answer.
_SHORT_WAITS = (
    "ipc.client.connect.max.retries=1", "ipc.client.connect.max.retries.on.timeouts=1",
    "ipc.client.connect.timeout=5000", "dfs.client.failover.max.attempts=2",
)  # fmt: skip


def doctor(settings: Settings, given: argparse.Namespace) -> int:
    """Check database, rights, warehouse, folders, Java, Spark, its executors and Airflow, and say
    what to do.
    The exit status is 1 if something is wrong."""
    checks = list(_checks(settings))
    if given.json:
        print_json([one.__dict__ for one in checks])
    else:
        for one in checks:
            print(one)
    return 1 if any(one.ok is False for one in checks) else 0


def _checks(settings: Settings) -> Iterator[Check]:
    config = os.environ.get("WEIR_CONFIG")
    yield Check("settings", True, f"{config or 'defaults'}, state folder {settings.state}")
    yield _java()
    yield _package("pyspark", "Spark", "append files and run consumers")
    master = use_named_master()
    _start_hadoop(settings)
    try:
        database = open_database(settings)
    except WeirError as error:
        yield wrong("database", error)
    else:
        with database:
            examined = list(examine(settings, database))
            yield from examined
            if all(one.ok for one in examined if one.what == "database"):
                yield from troubles(database)
    yield from check_cluster(settings, master)
    yield from _folders(settings)
    yield from _packages(settings)
    yield _package("apache-airflow", "Airflow", "schedule the jobs and show forms")
    for job, why in ACTIONS.broken().items():
        yield Check(job, False, *why.split("; ", 1))


def _start_hadoop(settings: Settings) -> None:
    """Start a JVM if a root needs Hadoop. What does not answer there is waited for a few seconds
    only; a job waits for many minutes."""
    if not any(map(needs_hadoop, (settings.warehouse, *settings.input_roots,
                                  *settings.output_roots))):  # fmt: skip
        return
    options = " ".join(f"--conf spark.hadoop.{one}" for one in _SHORT_WAITS)
    before = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    os.environ["PYSPARK_SUBMIT_ARGS"] = f"{options} {before}"
    try:
        from weir.spark.base.session import start_jvm

        start_jvm()
    except (ImportError, WeirError):
        pass  # the lines about Java and Spark say it


def _folders(settings: Settings) -> Iterator[Check]:
    for what, roots, mode in (
        ("input", settings.input_roots, os.R_OK), ("output", settings.output_roots, os.W_OK),
    ):  # fmt: skip
        for root in roots:
            if "://" in root:
                yield _far(what, root)
            elif what == "output" and (problem := not_writable(root)):
                yield Check(what, False, problem, "let this user write it, or change output_roots")
            elif what == "input" and not Path(root).is_dir():
                yield Check(what, None, f"{root} does not exist", "make it, or change input_roots "
                            "(`weir ingest` also reads files elsewhere)")  # fmt: skip
            elif not os.access(root, mode) and Path(root).exists():
                yield Check(what, False, f"{root} can't be read", "let this user read it")
            else:
                yield Check(what, True, root)


def _far(what: str, root: str) -> Check:
    """Check that a root that is no folder of this machine can be opened."""
    if needs_hadoop(root):
        return Check(what, None, f"{root} (not tried: only Hadoop opens it)")
    try:
        system, path = filesystem(root)
        [found] = system.get_file_info([path])
    except WeirError as error:
        return wrong(what, error)
    except OSError as error:
        return Check(what, False, f"{root}: {str(error).splitlines()[0]}",
                     "check its address and the credentials")  # fmt: skip
    if what == "input" and found.type == FileType.NotFound:
        return Check(what, None, f"{root} does not exist", "make it, or change input_roots")
    return Check(what, True, root)


def _packages(settings: Settings) -> Iterator[Check]:
    """Check that the packages of consumers' functions can be found."""
    for package in settings.function_packages:
        try:
            found = importlib.util.find_spec(package)
        except (ImportError, ValueError):
            found = None
        if found is None:
            yield Check("functions", None, f"there is no package {package!r}",
                        "put its folder into function_path, or remove it from function_packages "
                        "in weir.toml")  # fmt: skip
        else:
            yield Check("functions", True, f"{package} ({found.origin or 'a folder'})")


def _java() -> Check:
    """Check that there is a Java that Spark can use."""
    try:
        return Check("Java", True, find_java())
    except WeirError as error:
        return wrong("Java", error)


def _package(distribution: str, what: str, use: str) -> Check:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return Check(what, None, f"{distribution} is not installed for {sys.executable}",
                     f"install it to {use}")  # fmt: skip
    return Check(what, True, version)
