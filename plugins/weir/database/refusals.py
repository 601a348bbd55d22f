"""What errors of Postgres mean: which are outages, and what a person does about the others.

Errors are told apart by SQLSTATE, never by their text. libpq gives no SQLSTATE for a refused login,
so there, and only there, the text decides. In another language, a refused login is waited for like
an outage.
"""

import re

from sqlalchemy import exc

from weir.errors import DatabaseFailed, Unavailable
from weir.front_ends import do
from weir.queries.database import refusals as sql

_SETTING = "the setting 'database'"
# Texts of a refused login: what to do, and whether another try is of use without that.
_LOGIN: list[tuple[str, str, bool]] = [
    (r"password authentication failed|no password supplied",
     "correct the login and its password in {setting} or in what it names", False),
    (r"no pg_hba.conf entry", "let pg_hba.conf admit this login from this machine", False),
    (r'role "[^"]*" does not exist|user "[^"]*" does not exist|is not permitted to log in',
     "name another login in {setting}, or let the server's owner make it", False),
    (r'database "[^"]*" does not exist|not currently accepting connections',
     "name the right database in {setting}, or create it and migrate it: python -m "
     "weir.database.migrate", False),
    (r"permission denied for database",
     "name the right database in {setting}, or let its owner GRANT CONNECT ON it to "
     "this login", False),
    (r"(definition of service|service file) .* not found",
     "run this in the folder of weir.toml, or name that file in WEIR_CONFIG; otherwise correct the "
     "service in {setting}, or the file that lists it", False),
    (r"unsupported startup parameter",
     "behind a pooler in transaction mode, set pooler = true", False),
    (r"too many (clients|connections)|remaining connection slots|no more connections allowed",
     "end sessions that nobody needs, or raise the limit (max_connections, or that of the login, "
     "the database or the pooler), then try again", True),
    (r"the database system is|shutting down|in recovery mode|read-only transaction",
     "wait until the server is up and may be written, or name the one that took over, then try "
     "again", True),
]  # fmt: skip
_ELSE = "check that it runs and that {setting} is right, then try again"

_SEE_LOG = "see the server's log, and try again when it is mended"
_DAMAGED = (
    "its files are damaged: restore it from a backup or let a standby take over, then {recover}"
)
# SQLSTATEs that people meet whatever the statement is: what to do, and whether to try again as is.
_STATES: dict[str, tuple[str, bool]] = {
    "53000": ("give the server more of what it lacks, then try again", True),
    "53100": ("free space on the disk of Postgres, then try again", True),
    "53200": ("give the server more memory, or let it use less at once, then try again", True),
    "53300": ("end sessions that nobody needs, or raise the limit, then try again", True),
    "53400": ("raise the limit that it names for this login, then try again", True),
    "55000": (
        "if it names a publication, take Weir's tables out of that; otherwise " + _SEE_LOG, True
    ),
    "57014": (
        "if that was a time limit, raise statement_timeout for this login; otherwise somebody "
        "cancelled it, so try again", True
    ),
    "58000": (_SEE_LOG, True),
    "58030": ("see to the disk of Postgres, then try again", True),
    "58P01": (_DAMAGED, False),
    "58P02": (_SEE_LOG, True),
    "XX000": (_SEE_LOG, True),
    "XX001": (_DAMAGED, False),
    "XX002": ("an index is damaged: let the database's owner run REINDEX, then try again", False),
}  # fmt: skip
LOCKED = "55P03"  # lock not available
SOON = {"40001", "40P01", LOCKED}  # serialization failure, deadlock
# What a database without Weir, or with another version of it, answers: no such schema, table,
# function, column, type.
_ABSENT = {"3F000", "42P01", "42883", "42703", "42704"}
_RIGHT = "42501"
LOOKED_UP = _ABSENT | {_RIGHT}  # the database is asked what it has before one of them is told


MIGRATE = "migrate it: python -m weir.database.migrate"
NAME_ANOTHER = f"name another one in {_SETTING}, or {MIGRATE}"


def too_short(database: str, reason: str, limit: str) -> Unavailable:
    """Return the error for a session that the server ended, where transactions are limited."""
    return Unavailable(
        "transaction_too_short",
        f"the database ({database}) ended the session ({reason}), where a transaction may take "
        f"{limit}; raise transaction_timeout for this login, or set it to 0.",
    )


def sqlstate(error: exc.DBAPIError) -> str:
    """Return the SQLSTATE of an error; empty if the server did not answer."""
    return getattr(error.orig, "pgcode", None) or ""


def message(error: exc.DBAPIError) -> str:
    """Return the first line of the message of Postgres."""
    return (str(error.orig).strip().splitlines() or [type(error.orig).__name__])[0]


def detail(error: exc.DBAPIError) -> str:
    """Return the DETAIL of an error; empty if it has none."""
    diagnosis = getattr(error.orig, "diag", None)  # only a driver's error has it
    return getattr(diagnosis, "message_detail", None) or ""


def is_outage(error: exc.DBAPIError) -> bool:
    """Return whether the server is away or can't be written now."""
    state = sqlstate(error)
    if not state:  # no answer from the server: refused, reset, or closed in between
        return error.connection_invalidated or isinstance(error, exc.OperationalError)
    # 25006: the server is a standby now; 25P03: this process froze within a transaction.
    return state[:2] == "08" or state[:4] == "57P0" or state in ("25006", "25P03")


def login_advice(reason: str, setting: str = _SETTING) -> tuple[str, bool]:
    """Return what to do about a database that can't be reached, and whether another try may
    succeed without that. `setting`: what names the database."""
    for text, advice, again in _LOGIN:
        if re.search(text, reason):
            return advice.format(setting=setting), again
    return _ELSE.format(setting=setting), True


def advice(state: str) -> str:
    """Return what to do about an SQLSTATE that people meet whatever the statement is; empty for
    others."""
    return _STATES.get(state, ("", False))[0].format(recover=do("recover"))


def failed(error: exc.DBAPIError, reason: str, database: str) -> DatabaseFailed | None:
    """Return the error for an SQLSTATE that people meet whatever the statement is; None for others.
    `reason`: Postgres's message; `database`: where, or for which table."""
    found = _STATES.get(sqlstate(error))
    if found is None:
        return None
    hint = getattr(getattr(error.orig, "diag", None), "message_hint", None)
    return DatabaseFailed(
        "database_failed",
        f"the database ({database}) could not run a statement ({reason.rstrip('.')}"
        f"{f': {hint}'.rstrip('.') if hint else ''}); "
        f"{advice(sqlstate(error))}.",
        retryable=found[1],
    )


def without_weir(
    state: str, reason: str, database: str, standing: sql.Standing, layouts: tuple[str, str]
) -> DatabaseFailed | None:
    """Return the error for a refusal because the database or the login is not Weir's; None if both
    are. `layouts`: the database's, empty if not known, and this program's."""
    what = act = ""
    if not standing.migrated:
        what, act = "has no tables of Weir", NAME_ANOTHER
    elif not standing.usable or (state == _RIGHT and not standing.member):
        what = f"does not let login {standing.login} use Weir"
        act = (
            f"log in as a member of weir_jobs, or as the owner: GRANT weir_jobs TO {standing.login}"
        )
    elif state == _RIGHT:
        what = f"does not let login {standing.login} do that"
        act = "grant that right as the owner of the object, or, if it is Weir's, " + MIGRATE
    elif layouts[0] != layouts[1]:
        what = f"has layout {layouts[0] or 'unknown'}, and this program has {layouts[1]}"
        act = f"{MIGRATE}, or use the program of its version"
    if not what:
        return None
    return DatabaseFailed(
        "database_failed", f"the database ({database}) {what} ({reason}); {act}.", retryable=False
    )


def as_sqlalchemy_says(statement: str, error: Exception, lost: bool) -> exc.DBAPIError:
    """Return an error of the driver in the form of SQLAlchemy's own. `lost`: its connection is."""
    made = exc.DBAPIError.instance(statement, None, error, type(error), connection_invalidated=lost)
    assert isinstance(made, exc.DBAPIError)
    return made
