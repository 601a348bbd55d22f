"""Examine an installation: does its database answer, may its login do what jobs do, and is the
warehouse its own."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from sqlalchemy import Row, text

from weir.controller.ownership import check_location, check_owner, read_installation
from weir.database.connection import Database
from weir.database.refusals import MIGRATE
from weir.errors import WeirError
from weir.front_ends import do
from weir.operations.form import is_required
from weir.operations.jobs import FORMS
from weir.queries.database import refusals as asks
from weir.queries.operations import examination as sql
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, needs_hadoop
from weir.warehouse.marker import read_marker


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


Step = Callable[[Settings, Database], Check]


def examine(settings: Settings, database: Database) -> Iterator[Check]:
    """Check database, rights and warehouse; no further if the database is not usable."""
    steps: dict[str, Step] = {
        "database": _server,
        "rights": _rights,
        "clocks": _clocks,
        "warehouse": _warehouse,
    }
    for name, step in steps.items():
        try:
            check = step(settings, database)
        except WeirError as error:
            check = wrong(name, error)
        yield check
        if name == "database" and not check.ok:
            return


def troubles(database: Database) -> Iterator[Check]:
    """Say what is wrong now with what is in the database (weir.troubles)."""
    for one in database.snapshot(sql.troubles):
        remedy = one.advice + (f": {_typed(one.action, one.given)}" if one.action else "")
        yield Check(one.kind, None if one.severity == "amber" else False, one.sentence, remedy)


def _typed(action: str, given: Mapping[str, object]) -> str:
    """Return how to start an action, with what the person has to choose in capitals."""
    chosen = {one.name: one.name.upper() for one in fields(FORMS[action]) if is_required(one)}
    return do(action, **{**chosen, **given})


def wrong(what: str, error: WeirError) -> Check:
    """Return the check that an error is about."""
    found, _, remedy = error.sentence.partition("; ")
    return Check(what, False, found, remedy)


def _one(database: Database, statement: str) -> Row[tuple[object, ...]]:
    return database.transaction(lambda c: c.execute(text(statement)).one())


def _server(_: Settings, database: Database) -> Check:
    """Check that the database answers and has the layout that this program knows."""
    from weir.database.migrate import (  # which loads Alembic
        check_encoding,
        check_server,
        newest_layout,
    )

    row = database.transaction(asks.standing)
    check_server(row.version)
    check_encoding(row.encoding)
    version = f"{row.version // 10_000}.{row.version % 10_000}"
    found = f"Postgres {version}, {database.describe()}, as {row.login}"
    if row.usable is False:
        return Check("database", False, f"{found}: this login may not use Weir",
                     "log in as a member of weir_jobs")  # fmt: skip
    if not row.migrated:
        return Check("database", False, f"{found}: Weir's schema is missing", MIGRATE)
    layout = database.transaction(asks.layout)
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
            pg_has_role('weir_team', 'USAGE') AS team,
            has_table_privilege('weir_internal.stream', 'INSERT, UPDATE, DELETE') AS writes,
            has_schema_privilege('weir_internal', 'CREATE') AS creates,
            current_setting('session_replication_role') = 'replica' AS replica""",
    )
    if row.replica:
        return Check("rights", False, f"{row.login} runs no triggers and checks no foreign keys "
                     "(session_replication_role = replica)",
                     f"ALTER ROLE {row.login} RESET session_replication_role")  # fmt: skip
    if not ((row.jobs or row.team) and row.writes):
        return Check("rights", False, f"{row.login} may not write Weir's tables",
                     f"as the owner: GRANT weir_jobs TO {row.login}")  # fmt: skip
    if row.creates:
        return Check("rights", None, f"{row.login} may also change Weir's tables",
                     "let jobs use a login that is only a member of weir_jobs")  # fmt: skip
    if not row.jobs:
        return Check("rights", True, f"{row.login} does what jobs do, with what its teams own")
    return Check("rights", True, f"{row.login} is a member of weir_jobs")


def _clocks(_: Settings, database: Database) -> Check:
    """Say what time it is for Postgres, by whose clock all is ordered."""
    now = _one(database, "SELECT clock_timestamp() AS now").now
    return Check("clocks", True, f"Postgres says {now:%Y-%m-%d %H:%M:%S %Z}")


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
    if "://" not in settings.warehouse and (problem := not_writable(settings.warehouse)):
        return Check("warehouse", False, problem, "make it, or let this user write it")
    try:
        system, base = filesystem(settings.warehouse)
        system.get_file_info(base)
    except OSError as error:
        return Check("warehouse", False, f"{settings.warehouse}: {str(error).splitlines()[0]}",
                     "check its address and the credentials")  # fmt: skip
    return Check("warehouse", True, settings.warehouse)


def not_writable(folder: str) -> str:
    """Return what is wrong with a folder that is to be written, or nothing. A folder that is
    missing is made by the first job if the one above it can be written."""
    path = Path(folder)
    while not path.exists():
        path = path.parent
    return "" if os.access(path, os.W_OK | os.X_OK) else f"{path} can't be written"
