"""`weir doctor`: check what an installation needs, and say what to do about what is missing."""

import argparse
import importlib.metadata
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow.fs import FileType
from sqlalchemy import text

from weir.controller.ownership import check_location, check_owner, read_installation
from weir.database.connection import Database
from weir.database.refusals import LAYOUT, MIGRATE, STANDING
from weir.errors import WeirError
from weir.settings import Settings
from weir.spark.base.java import find_java
from weir.terminal.find_installation import open_database
from weir.terminal.printing import print_json
from weir.warehouse.filesystem import filesystem, needs_hadoop
from weir.warehouse.marker import read_marker

# The periodic jobs, and seconds after which one that has not run is probably paused.
PERIODIC = {
    "stream_cuts": 3600, "checkpoints": 3600, "scale": 3600, "adjunct": 3600,
    "retention": 4 * 3600, "upkeep": 12 * 3600,
}  # fmt: skip
# Of Hadoop, for one address that does not answer.
_SHORT_WAITS = (
    "ipc.client.connect.max.retries=1", "ipc.client.connect.max.retries.on.timeouts=1",
    "ipc.client.connect.timeout=5000", "dfs.client.failover.max.attempts=2",
)  # fmt: skip


@dataclass(frozen=True)
class Check:
    """What was checked, and what came of it. `ok` None: not good, but nothing fails for it."""

    what: str
    ok: bool | None
    found: str
    remedy: str = ""

    def __str__(self) -> str:
        verdict = {True: "ok", False: "WRONG", None: "note"}[self.ok]
        line = f"{verdict:6} {self.what:11} {self.found}"
        return line + (f"\n{'':18} -> {self.remedy}" if self.remedy else "")


def doctor(settings: Settings, given: argparse.Namespace) -> int:
    """Check database, rights, warehouse, folders, Java, Spark and Airflow, and say what to do.
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
    _start_hadoop(settings)
    try:
        database = open_database(settings)
    except WeirError as error:
        yield _wrong("database", error)
    else:
        with database:
            yield from _database_checks(settings, database)
    yield from _folders(settings)
    yield from _packages(settings)
    yield _package("apache-airflow", "Airflow", "schedule the jobs and show forms")


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


def _database_checks(settings: Settings, database: Database) -> Iterator[Check]:
    steps: list[tuple[str, Callable[[Settings, Database], Check]]] = [
        ("database", _server), ("rights", _rights), ("warehouse", _warehouse),
        ("upkeep", _periodic),
    ]  # fmt: skip
    for name, step in steps:
        try:
            check = step(settings, database)
        except WeirError as error:
            check = _wrong(name, error)
        yield check
        if name == "database" and not check.ok:
            return


def _wrong(what: str, error: WeirError) -> Check:
    found, _, remedy = error.sentence.partition("; ")
    return Check(what, False, found, remedy)


def _one(database: Database, statement: str, **given: Any) -> Any:
    return database.transaction(lambda c: c.execute(text(statement), given).one())


def _server(_: Settings, database: Database) -> Check:
    """Check that the database answers and has the layout that this program knows."""
    from weir.database.migrate import check_server, newest_layout  # which loads Alembic

    row = _one(database, STANDING)
    check_server(row.version)
    version = f"{row.version // 10_000}.{row.version % 10_000}"
    found = f"Postgres {version}, {database.describe()}, as {row.login}"
    if row.usable is False:
        return Check("database", False, f"{found}: this login may not use Weir",
                     "log in as a member of weir_jobs")  # fmt: skip
    if not row.migrated:
        return Check("database", False, f"{found}: Weir's schema is missing", MIGRATE)
    layout = _one(database, LAYOUT).version_num
    if layout != newest_layout():
        return Check("database", False, f"{found}: its layout is {layout}, this program's is "
                     f"{newest_layout()}", f"{MIGRATE}, or use the program of its version"
                     )  # fmt: skip
    return Check("database", True, f"{found}, layout {layout}")


def _rights(_: Settings, database: Database) -> Check:
    """Check that the login may do what jobs do, and no more."""
    row = _one(
        database,
        """SELECT current_user AS login, pg_has_role('weir_jobs', 'USAGE') AS jobs,
            has_table_privilege('weir_internal.stream', 'INSERT, UPDATE, DELETE') AS writes,
            has_schema_privilege('weir_internal', 'CREATE') AS creates""",
    )
    if not (row.jobs and row.writes):
        return Check("rights", False, f"{row.login} may not write Weir's tables",
                     f"as the owner: GRANT weir_jobs TO {row.login}")  # fmt: skip
    if row.creates:
        return Check("rights", None, f"{row.login} may also change Weir's tables",
                     "let jobs use a login that is only a member of weir_jobs")  # fmt: skip
    return Check("rights", True, f"{row.login} is a member of weir_jobs")


def _warehouse(settings: Settings, database: Database) -> Check:
    """Check that the warehouse is this database's and can be written."""
    if needs_hadoop(settings.warehouse):
        return Check("warehouse", None, f"{settings.warehouse} (not tried: only Hadoop opens it)",
                     "run `weir upkeep`, a job, which says what is wrong")  # fmt: skip
    marker, known = read_marker(settings.warehouse), read_installation(database)
    check_owner(settings.warehouse, known, marker)
    check_location(settings.warehouse, known, marker)
    if known.may_be_restored(marker):
        return Check("warehouse", False, "the database was restored from a backup, moved, or "
                     "replaced by a standby", "run `weir recover` once")  # fmt: skip
    if "://" not in settings.warehouse and (problem := _not_writable(settings.warehouse)):
        return Check("warehouse", False, problem, "make it, or let this user write it")
    try:
        system, base = filesystem(settings.warehouse)
        system.get_file_info(base)
    except OSError as error:
        return Check("warehouse", False, f"{settings.warehouse}: {str(error).splitlines()[0]}",
                     "check its address and the credentials")  # fmt: skip
    return Check("warehouse", True, settings.warehouse)


def _not_writable(folder: str) -> str:
    """Return what is wrong with a folder that is to be written, or nothing. A folder that is
    missing is made by the first job if the one above it can be written."""
    path = Path(folder)
    while not path.exists():
        path = path.parent
    return "" if os.access(path, os.W_OK | os.X_OK) else f"{path} can't be written"


def _folders(settings: Settings) -> Iterator[Check]:
    for what, roots, mode in (
        ("input", settings.input_roots, os.R_OK), ("output", settings.output_roots, os.W_OK),
    ):  # fmt: skip
        for root in roots:
            if "://" in root:
                yield _far(what, root)
            elif what == "output" and (problem := _not_writable(root)):
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
        return _wrong(what, error)
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


def _periodic(_: Settings, database: Database) -> Check:
    """Check that the periodic DAGs run, without which nothing is scaled, built or truncated."""
    rows = database.transaction(
        lambda c: c.execute(
            text(
                """SELECT p.key AS job FROM jsonb_each_text(CAST(:periods AS jsonb)) p
                WHERE NOT EXISTS (SELECT FROM job_run r WHERE r.job = p.key
                    AND r.started_at > clock_timestamp() - p.value::integer * interval '1 second')
                ORDER BY p.key"""
            ),
            {"periods": json.dumps(PERIODIC)},
        ).scalars().all()
    )  # fmt: skip
    if rows:
        return Check("upkeep", None, "not run lately: " + ", ".join(f"weir_{one}" for one in rows),
                     "start Airflow, or unpause these DAGs; until then nothing is checkpointed, "
                     "scaled, built or truncated")  # fmt: skip
    return Check("upkeep", True, "the periodic jobs ran lately")


def _java() -> Check:
    """Check that there is a Java that Spark can use."""
    try:
        return Check("Java", True, find_java())
    except WeirError as error:
        return _wrong("Java", error)


def _package(distribution: str, what: str, use: str) -> Check:
    try:
        version = importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return Check(what, None, f"{distribution} is not installed for {sys.executable}",
                     f"install it to {use}")  # fmt: skip
    return Check(what, True, version)
