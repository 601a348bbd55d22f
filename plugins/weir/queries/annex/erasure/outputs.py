"""What consumers wrote of streams to output roots and to tables. Made by `make queries` from sql/annex/erasure/queries/outputs.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

OUTPUTS = text(
    """SELECT p.group_name, p.output, p.root, array_agg(p.path ORDER BY p.number) AS folders,
    g.subject, g.streams
FROM parquet_output p JOIN (
    SELECT g.group_id, g.subject, array_agg(DISTINCT l.stream_id) AS streams
    FROM placement l JOIN reader_group g USING (group_id)
    WHERE l.stream_id = ANY(:streams) GROUP BY g.group_id) g USING (group_id)
GROUP BY p.group_id, p.group_name, p.output, p.root, g.subject, g.streams ORDER BY 1, 2, 3"""
)


class Output(NamedTuple):
    """A row of `outputs`."""

    group_name: str
    output: str
    root: str
    folders: list[str]
    subject: str
    streams: list[int]


def outputs(connection: Connection, *, streams: Sequence[int]) -> list[Output]:
    """Return the Parquet outputs of the groups that read some streams."""
    result = connection.execute(OUTPUTS, {"streams": list(streams)})
    return [Output._make(row) for row in result]


TABLES = text(
    """SELECT o ->> 'output' AS name, g.subject, array_agg(DISTINCT l.stream_id) AS streams
FROM placement l JOIN reader_batch b USING (group_id) LEFT JOIN reader_group g USING (group_id)
CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
WHERE l.stream_id = ANY(:streams) AND l.number = 1 AND o ->> 'kind' = 'table'
GROUP BY 1, 2 ORDER BY 1, 2"""
)


class OutputTable(NamedTuple):
    """A row of `tables`."""

    name: str
    subject: str | None
    streams: list[int]


def tables(connection: Connection, *, streams: Sequence[int]) -> list[OutputTable]:
    """Return the tables that groups have written to which read some streams, one for each subject."""
    result = connection.execute(TABLES, {"streams": list(streams)})
    return [OutputTable._make(row) for row in result]


LOCK_FOLDER = text(
    """SELECT FROM parquet_output WHERE group_name = :group AND output = :name AND root = :root
    AND path = :path FOR NO KEY UPDATE"""
)


def lock_folder(connection: Connection, *, group: str, name: str, root: str, path: str) -> None:
    """Lock a folder of an output."""
    result = connection.execute(
        LOCK_FOLDER, {"group": group, "name": name, "root": root, "path": path}
    )
    result.close()


ERASE_FROM_TABLE = text(
    """SELECT erased, why FROM erase_from_table(:name, CAST(:columns AS text[]), CAST(:keys AS text[]), :only_count)"""
)


class EraseFromTable(NamedTuple):
    """A row of `erase_from_table`."""

    erased: int | None
    why: str | None


def erase_from_table(
    connection: Connection,
    *,
    name: str,
    columns: Sequence[str],
    keys: Sequence[str],
    only_count: bool,
) -> EraseFromTable:
    """Delete the rows of a table with some keys, or only count them. Returns how many, or why the table is left."""
    result = connection.execute(
        ERASE_FROM_TABLE,
        {"name": name, "columns": list(columns), "keys": list(keys), "only_count": only_count},
    )
    row = result.one()
    return EraseFromTable._make(row)


COUNT_ERASED = text("""SELECT count_erased(:request_id, NULL, :name, :part, :rows)""")


def count_erased(
    connection: Connection, *, request_id: str, name: str, part: str | None, rows: int
) -> None:
    """Record how many rows a request has erased of an output, or of a part of it."""
    result = connection.execute(
        COUNT_ERASED, {"request_id": request_id, "name": name, "part": part, "rows": rows}
    )
    result.close()
