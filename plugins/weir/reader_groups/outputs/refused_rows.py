"""Decide what it means that Postgres refuses rows for a table: bad rows, or another cause.

Only SQLSTATEs that a row alone can cause count as the rows' fault. A missing right, a full disk, a
time-out or a missing table refuses every row alike, and an unknown state counts as such a cause.
"""

import re

from sqlalchemy import exc

from weir.database.refusals import SOON, detail, failed, is_outage, sqlstate
from weir.errors import BadRows, BatchFailed, InvalidInput, WeirError
from weir.model.names import cut_off

# Null, foreign key, unique, check, exclusion; a value too long for an index; and RAISE EXCEPTION in
# a trigger.
_OF_ROWS = {"23502", "23503", "23505", "23514", "23P01", "54000", "P0001"}
_NOT_READY = "55000"  # of a table by which no other statement is touched
_SHOWN = 200  # the most characters of a row that a sentence quotes
# Data exceptions that no row causes: a sequence at its end, a COPY whose data is not CSV.
_NOT_DATA = {"2200H", "22P04"}

# No such schema, table, function, column.
_ABSENT = {"3F000", "42P01", "42883", "42703"}


def of_rows(state: str) -> bool:
    """Return whether an SQLSTATE says that a row is the cause."""
    return state in _OF_ROWS or (state[:2] == "22" and state not in _NOT_DATA)


def bad_rows(table: str, message: str) -> BadRows:
    """Return the error for rows that do not fit a table. `message`: what Postgres says of them."""
    return BadRows(
        "bad_rows",
        f"rows do not fit table {table} ({message}); correct what the function returns, or change "
        "the table.",
    )


def refused(table: str, error: exc.DBAPIError) -> WeirError | None:
    """Return the error for rows that Postgres refused for one or several tables: BadRows,
    InvalidInput if a right is missing, BatchFailed if the table or a column was changed or dropped
    meanwhile, else None."""
    state, message = sqlstate(error), str(error.orig).strip().partition("\n")[0]
    if row := detail(error):
        message += f": {cut_off(row.rstrip('.'), _SHOWN)}"
    if _without_partition(error):
        return BatchFailed(
            "table_changed",
            f"table {table} has no partition for a row ({message}); create one, or a DEFAULT "
            "partition, and the next try reads the batch again.",
            retryable=True,
        )
    if of_rows(state):
        return bad_rows(table, message + _raised_by(error))
    if state == "21000":
        return InvalidInput(
            "table_refused",
            f"rows can't be upserted into table {table} ({message}), because values of its key "
            "differ in the batch and are one to the table, by its collation or a trigger; write "
            "them alike in the function that returns the rows, or change the table.",
        )
    if state == "42501":
        return InvalidInput(
            "right_missing",
            f"rows can't be put into table {table} ({message}), because the role weir_publisher "
            f"lacks a right; {_grant(table, message)}.",
        )
    if state == "42P10":
        return InvalidInput(
            "table_refused",
            f"rows can't be upserted into table {table} ({message}); create a unique index on just "
            "the columns of its key.",
        )
    if state in _ABSENT:
        return BatchFailed(
            "table_changed",
            f"rows can't be put into table {table} ({message}), because that, or what its triggers "
            "use, was dropped; create it again, or correct the trigger, and the next try reads the "
            "batch again.",
            retryable=True,
        )
    if state == "WEIR3":
        return BatchFailed(
            "table_changed", f"{message}; the next try reads the batch again.", retryable=True
        )
    if state.startswith("WEIR") or is_outage(error) or state in SOON:
        return None
    if state != _NOT_READY and (told := failed(error, message, f"for table {table}")):
        return told
    return InvalidInput(
        "table_refused",
        f"table {table} can't take the rows ({message}{_raised_by(error)}, SQLSTATE {state}); "
        "correct the table, its triggers and rules, or the function that the output calls.",
    )


def _raised_by(error: exc.DBAPIError) -> str:
    """Return the function that raised an error, if one of SQL did, as a part of a sentence."""
    context = getattr(getattr(error.orig, "diag", None), "context", None) or ""
    raised = context.partition("\n")[0]
    return f", by {raised}" if "weir_internal." not in raised and "function" in raised else ""


def _grant(tables: str, message: str) -> str:
    """Return what to do about a right that Postgres misses, if possible as the statement. `tables`:
    those whose rows it refuses, with their schemas, which its message does not have."""
    found = re.search(r"permission denied for (schema|sequence|function|table) (\S+)", message)
    if found is not None and re.match(r"weir_internal|weir_staging|g\d+_t\d+_\d+$", found[2]):
        return (
            "that is Weir's own, and nobody's triggers and functions may reach it: remove it from "
            "them"
        )
    if found is None:
        return (
            "grant it USAGE on the table's schema and sequences, its rights on the table, and what "
            "triggers need"
        )
    rights = {"function": "EXECUTE", "table": "SELECT, INSERT, UPDATE, DELETE (or what is needed)"}
    named = [one for one in tables.split(", ") if one.rpartition(".")[2] == found[2]]
    what = named[0] if found[1] == "table" and len(named) == 1 else found[2]
    return (
        f"run GRANT {rights.get(found[1], 'USAGE')} ON {found[1].upper()} {what} TO weir_publisher"
    )


def _without_partition(error: exc.DBAPIError) -> bool:
    """Return whether no partition takes the row: then Postgres names a table but no constraint."""
    diagnosis = getattr(error.orig, "diag", None)
    return (
        sqlstate(error) == "23514"
        and diagnosis is not None
        and bool(diagnosis.table_name)
        and not diagnosis.constraint_name
    )
