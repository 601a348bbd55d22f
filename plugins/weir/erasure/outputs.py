"""Erase the rows of some keys from the Parquet files that batches have written to output roots."""

import contextlib
import hashlib
import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection, text

from weir.compaction.forms import form_of, options
from weir.database.connection import Database
from weir.erasure.copies import Remaining, Searched
from weir.errors import Unavailable
from weir.warehouse.file_deletion import delete_here
from weir.warehouse.filesystem import filesystem, replaces

# Why something of them is left.
BLIND = "some of its files have no column that has the keys"
FORBIDDEN = "it has no column that has the keys, or weir_publisher may not delete its rows"


@dataclass(frozen=True)
class Written:
    """A Parquet output of a group: the folders that count, and the columns that have the keys in
    the streams that the group reads."""

    group: str
    name: str
    root: str
    folders: tuple[str, ...]
    columns: frozenset[str]


class Table(NamedTuple):
    """A table that groups have written to, and the columns that may have the keys."""

    name: str
    columns: tuple[str, ...]


def searched_outputs(
    connection: Connection, streams: Sequence[Searched], *, by_keys: bool
) -> tuple[list[Written], list[Remaining]]:
    """Return the Parquet outputs of the groups that read some streams: those that an erasure of
    keys searches, and those that it leaves."""
    columns = {one.stream_id: one.column.lower() for one in streams if one.column}
    found, left = list[Written](), list[Remaining]()
    for row in connection.execute(_OUTPUTS, {"streams": [one.stream_id for one in streams]}):
        known = frozenset(columns[s] for s in row.streams if s in columns)
        one = Written(row.group_name, row.output, row.root, tuple(row.folders), known)
        if by_keys and known:
            found.append(one)
        else:
            why = "a condition is about one stream only" if known else "no column has the keys"
            left.append(left_output(one, why))
    return found, left


def searched_tables(
    connection: Connection, streams: Sequence[Searched], *, by_keys: bool
) -> tuple[list[Table], list[Remaining]]:
    """Return the tables that groups which read some streams have written to, as far as the batches
    that name them are kept: those that an erasure of keys searches, and those that it leaves."""
    columns = {one.stream_id: one.column.lower() for one in streams if one.column}
    found, left = list[Table](), list[Remaining]()
    for row in connection.execute(_TABLES, {"streams": [one.stream_id for one in streams]}):
        known = sorted({columns[s] for s in row.streams if s in columns})
        if by_keys and known:
            found.append(Table(row.name, tuple(known)))
        else:
            why = "a condition is about one stream only" if known else "no column has the keys"
            left.append(left_table(row.name, why))
    return found, left


def left_table(name: str, why: str) -> Remaining:
    """Return a table as one that an erasure leaves."""
    return Remaining(
        "table", name, f"it was made of the events, and {why}", "until its owner deletes the rows"
    )


def rows_in_table(connection: Connection, table: Table, keys: Sequence[str]) -> int | None:
    """Return how many rows of a table have some keys; None if that can't be seen."""
    return _in_table(connection, table, keys, count_only=True)


def erase_rows_of_table(
    connection: Connection, table: Table, keys: Sequence[str], request_id: str
) -> int | None:
    """Delete the rows of a table that have some keys. Returns how many; None if it has no column
    for them, or if weir_publisher may not delete there."""
    rows = _in_table(connection, table, keys, count_only=False)
    if rows:
        given = {"id": request_id, "name": f"table {table.name}", "rows": rows}
        connection.execute(_COUNTED, given)
    return rows


def _in_table(
    connection: Connection, table: Table, keys: Sequence[str], *, count_only: bool
) -> int | None:
    given = {"t": table.name, "columns": list(table.columns), "keys": list(keys),
             "only": count_only}  # fmt: skip
    rows: int | None = connection.execute(
        text(
            """SELECT erase_from_table(:t, CAST(:columns AS text[]), CAST(:keys AS text[]),
                :only)"""
        ),
        given,
    ).scalar_one()
    return rows


def left_output(one: Written, why: str) -> Remaining:
    """Return a Parquet output as one that an erasure leaves."""
    return Remaining(
        "Parquet output", f"{one.name} of {one.group}", f"it was made of the events, and {why}",
        "until its owner deletes the rows",
    )  # fmt: skip


class Looked:
    """What was seen in an output: how many rows have the keys, and whether some files have no
    column that could."""

    def __init__(self) -> None:
        self.rows, self.blind = 0, False


def rows_with_keys(one: Written, keys: Sequence[str]) -> Looked:
    """Return how many rows of an output have some keys. Raises Unavailable."""
    seen = Looked()
    with _saying_which(one):
        for _path, _file, gone in _files(one, keys, seen):
            seen.rows += len(gone)
    return seen


def erase_output(database: Database, one: Written, keys: Sequence[str], request_id: str) -> Looked:
    """Erase the rows with some keys, file after file. Whoever reads a file meanwhile has the old
    one or the new one. Raises Unavailable if a file can't be read or replaced."""
    system, base = filesystem(one.root)
    seen = Looked()
    with _saying_which(one):
        for path, file, gone in _files(one, keys, seen):
            seen.rows += len(gone)
            # First, and by the file: so a run that is killed and runs again counts it once.
            noted = hashlib.sha256(path.encode()).hexdigest()[:16]
            given = {"id": request_id, "name": f"{one.name} of {one.group}",
                     "noted": json.dumps({noted: len(gone)})}  # fmt: skip
            database.transaction(lambda c, g=given: c.execute(_NOTED, g))  # type: ignore[misc]  # the loop's own
            if len(gone) == file.metadata.num_rows:
                failed = delete_here([(one.root, path.removeprefix(f"{base}/"))])
                if failed:
                    raise OSError(next(iter(failed.values())))
            else:
                _replace(system, path, file, gone)
    return seen


@contextlib.contextmanager
def _saying_which(one: Written) -> Iterator[None]:
    """Raise Unavailable that names an output of which a file can't be read or replaced."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise Unavailable(
            "output_not_erasable",
            f"a file of output {one.name} of group {one.group} can't be read or written without "
            f"the rows ({error}); see to the output root {one.root}, then run this again.",
        ) from error


def _files(
    one: Written, keys: Sequence[str], seen: Looked
) -> Iterator[tuple[str, "pq.ParquetFile", "np.ndarray[tuple[int], np.dtype[np.int64]]"]]:
    """Yield the files that have rows with some keys: the path, the file, and which rows."""
    system, base = filesystem(one.root)
    wanted = pa.array(list(keys), pa.string())
    for folder in one.folders:
        selector = fs.FileSelector(
            f"{base}/{folder}".rstrip("/"), recursive=True, allow_not_found=True
        )
        for info in system.get_file_info(selector):
            if info.type != fs.FileType.File or not info.path.endswith(".parquet"):
                continue
            with system.open_input_file(info.path) as source:
                file = pq.ParquetFile(pa.BufferReader(source.read()))
            below = _values(info.path[len(base) + len(folder) :])
            if value := next((below[c] for c in one.columns if c in below), None):
                rows = file.metadata.num_rows if value in set(keys) else 0
                if rows:
                    yield info.path, file, np.arange(rows)
                continue
            names = {n.lower(): n for n in file.schema_arrow.names}
            column = next((names[c] for c in one.columns if c in names), None)
            if column is None or pa.types.is_nested(file.schema_arrow.field(column).type):
                seen.blind = True
                continue
            same = pc.is_in(file.read([column])[column].cast(pa.string()), value_set=wanted)
            gone = pc.indices_nonzero(pc.fill_null(same, False)).to_numpy()
            if len(gone):
                yield info.path, file, gone


def _values(path: str) -> dict[str, str]:
    """Return the values in the names of the folders of a path, by their columns."""
    parts = (part.partition("=") for part in path.split("/")[:-1] if "=" in part)
    return {unquote(name).lower(): unquote(value) for name, _, value in parts}


def _replace(system: fs.FileSystem, path: str, file: pq.ParquetFile, gone: "np.ndarray") -> None:
    whole = file.read()
    kept = whole.filter(pa.array(~np.isin(np.arange(whole.num_rows), gone)))
    folder, _, name = path.rpartition("/")
    at_once = replaces(system)
    new = path if at_once else f"{folder}/.{name}.{uuid.uuid4().hex}"  # which no reader looks at
    try:
        with system.open_output_stream(new) as sink:
            pq.write_table(kept, sink, **options(form_of(file)))
        if not at_once:
            with contextlib.suppress(FileNotFoundError):  # Hadoop's, of the old bytes
                system.delete_file(f"{folder}/.{name}.crc")
            system.move(new, path)
    except BaseException:
        if not at_once:
            with contextlib.suppress(OSError):
                system.delete_file(new)
        raise


_OUTPUTS = text(
    """SELECT p.group_name, p.output, p.root, array_agg(p.path ORDER BY p.number) AS folders,
        (SELECT array_agg(gs.stream_id) FROM reader_group_stream gs
         WHERE gs.group_id = p.group_id AND gs.stream_id = ANY(:streams)) AS streams
    FROM parquet_output p
    WHERE p.group_id IN (SELECT gs.group_id FROM reader_group_stream gs
                         WHERE gs.stream_id = ANY(:streams))
    GROUP BY p.group_id, p.group_name, p.output, p.root ORDER BY 1, 2, 3"""
)
_TABLES = text(
    """SELECT o ->> 'output' AS name, array_agg(DISTINCT gs.stream_id) AS streams
    FROM reader_batch b JOIN reader_group_stream gs USING (group_id)
    CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
    WHERE gs.stream_id = ANY(:streams) AND o ->> 'kind' = 'table' GROUP BY 1 ORDER BY 1"""
)
_COUNTED = text(
    """UPDATE erasure_request SET outputs = outputs || jsonb_build_object(CAST(:name AS text),
        jsonb_build_object('rows', coalesce(CAST(outputs #>> ARRAY[:name, 'rows'] AS bigint), 0)
            + :rows))
    WHERE request_id = :id"""
)
_NOTED = text(
    """UPDATE erasure_request SET outputs = outputs || jsonb_build_object(CAST(:name AS text),
        coalesce(outputs -> :name, '{}') || CAST(:noted AS jsonb))
    WHERE request_id = :id"""
)
