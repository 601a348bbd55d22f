"""Send rows to the staging table of a batch, and say what it means that Postgres refuses them."""

import re
from collections.abc import Mapping
from typing import IO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from sqlalchemy import exc

from weir.database.connection import Database, copy_in
from weir.database.refusals import sqlstate
from weir.errors import DatabaseFailed, Fenced, Unavailable
from weir.reader_groups.outputs.refused_rows import bad_rows, of_rows

_CSV = pyarrow.csv.WriteOptions(include_header=False, quoting_style="all_valid")
_SHOWN = 200  # the most characters of a value that an error quotes


class Answer(NamedTuple):
    """What came of a COPY: the transaction that has its rows, or what Postgres said."""

    piece: str | None
    rows: int
    state: str | None = None
    error: str | None = None


def write_csv(rows: pa.RecordBatch | pa.Table, to: IO[bytes]) -> None:
    """Write rows of texts for a COPY."""
    if isinstance(rows, pa.Table):
        rows = rows.combine_chunks()  # pyarrow writes the rows after an empty chunk twice
    if rows.num_rows:
        pyarrow.csv.write_csv(rows, to, _CSV)


def send(database: Database, statement: str, rows: IO[bytes], count: int) -> Answer:
    """Send a file of CSV to a COPY in one transaction."""
    try:
        return Answer(database.transaction(lambda c: copy_in(c, statement, rows)), count)
    except exc.DBAPIError as refused:
        context = getattr(getattr(refused.orig, "diag", None), "context", None) or ""
        where = re.sub(r"^COPY \S+, line \d+,? ?", "", context.partition("\n")[0])
        error = str(refused.orig).partition("\n")[0] + (f" ({where})" if where else "")
        return Answer(None, count, sqlstate(refused), error)
    except (Unavailable, DatabaseFailed) as away:
        return Answer(None, count, "", away.sentence)


def check(table: str, answer: Answer) -> None:
    """Raise BadRows for rows that Postgres refused, Unavailable if it is away, Fenced if the
    batch's table of staging is gone."""
    if answer.error is None:
        return
    if of_rows(answer.state or ""):
        raise bad_rows(table, answer.error)
    if answer.state == "42P01":
        raise Fenced(
            "batch_taken_over",
            f"the rows for table {table} have no place any more ({answer.error}): another reader "
            "has taken over the batch; what this one wrote is garbage.",
        )
    raise Unavailable(
        "output_not_writable",
        f"the rows for table {table} could not be copied ({answer.error}); the next try reads the "
        "batch again, so see to the cause if it stays.",
    )


def too_long(
    rows: pa.RecordBatch | pa.Table, limits: Mapping[int, tuple[str, int]]
) -> Answer | None:
    """Return Postgres's answer to a value that is too long. Postgres cuts off excess blanks
    silently, so they are checked here. `limits`: `Copy.longest`."""
    for i, (name, limit) in limits.items():
        found = pc.index(pc.greater(pc.utf8_length(rows.column(i)), limit), True).as_py()
        if found >= 0:
            value = rows.column(i)[found].as_py()[:_SHOWN]
            message = (
                f'value too long for type character varying({limit}) (column {name}: "{value}")'
            )
            return Answer(None, 0, "22001", message)
    return None
