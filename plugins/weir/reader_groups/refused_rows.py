"""What it means that Postgres refuses rows for a table: their own fault, or something else.

Only a state that can't be but a row's is a row's. A missing right, a full disk, a time-out or a
table that is gone refuses every row alike, and so does what is not known.
"""

from sqlalchemy import exc

from weir.database.connection import sqlstate
from weir.errors import BadRows, BatchFailed, InvalidInput, WeirError

# Null, foreign key, unique, check, exclusion; and RAISE EXCEPTION in a trigger.
_OF_ROWS = {"23502", "23503", "23505", "23514", "23P01", "P0001"}
# Of the data exceptions those that are none: a sequence at its end, a COPY that is no CSV.
_NOT_DATA = {"2200H", "22P04"}


def of_rows(state: str) -> bool:
    """Whether an SQLSTATE says that a row is the cause."""
    return state in _OF_ROWS or (state[:2] == "22" and state not in _NOT_DATA)


def refused(table: str, error: exc.DBAPIError) -> WeirError | None:
    """What Postgres's refusal of rows for a table (or several) means: BadRows, InvalidInput when a
    right is missing, BatchFailed when a column was changed meanwhile, None for anything else."""
    state, said = sqlstate(error), str(error.orig).strip().partition("\n")[0]
    if of_rows(state) and not _without_partition(error):
        return BadRows("rows_refused", f"rows do not fit table {table}: {said}")
    if state == "42501":
        return InvalidInput(
            "right_missing",
            f"rows can't be inserted into table {table} ({said}), because the role weir_publisher "
            "lacks a right; grant it USAGE on the table's schema and sequences, INSERT on the "
            "table, and what its triggers need.",
        )
    if state == "WEIR3":
        return BatchFailed(
            "table_changed", f"{said}; the next try reads the batch again.", retryable=True
        )
    return None


def _without_partition(error: exc.DBAPIError) -> bool:
    """Whether no partition takes the row: Postgres names a table, but no constraint of it."""
    said = getattr(error.orig, "diag", None)
    return (
        sqlstate(error) == "23514"
        and said is not None
        and bool(said.table_name)
        and not said.constraint_name
    )
