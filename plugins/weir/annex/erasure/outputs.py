"""Erase the rows of some keys from the Parquet files that batches have written to output roots."""

import contextlib
import hashlib
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection

from weir.annex.erasure.copies import Remaining, Searched, several
from weir.compaction.forms import Form, form_of, options
from weir.database.connection import Database
from weir.errors import Unavailable
from weir.kernel.bounds import bounded
from weir.kernel.folder_files import NO_VALUE, values_in
from weir.kernel.matching import has_texts, in_columns
from weir.queries.annex.erasure import outputs as sql
from weir.warehouse.file_deletion import delete_here, delete_if_empty
from weir.warehouse.filesystem import filesystem, replaces
from weir.warehouse.paths import is_of_group, lies_below

# Why something of them is left.
BLIND = "some of its files have no column that has the keys"


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
    columns: list[str]


def searched_outputs(
    connection: Connection, streams: Sequence[Searched], roots: Sequence[str], *, by_keys: bool
) -> tuple[list[Written], list[Remaining]]:
    """Return the Parquet outputs of the groups that read some streams: those that an erasure of
    keys searches, and those that it leaves. It changes nothing but what a group has written below
    the output roots of this installation."""
    made = {one.stream_id: one.made for one in streams}
    found, left = list[Written](), list[Remaining]()
    for row in sql.outputs(connection, streams=[*made]):
        known = frozenset(_columns(row, made))
        one = Written(row.group_name, row.output, row.root, tuple(row.folders), known)
        own = all(
            is_of_group(path, one.group) and lies_below(one.root, path, roots)
            for path in one.folders
        )
        if not own:
            left.append(left_output(one, f"{one.root} is not below output_roots"))
        elif by_keys and known:
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
    made = {one.stream_id: one.made for one in streams}
    found, left = list[Table](), list[Remaining]()
    of_table = dict[str, set[str]]()
    for row in sql.tables(connection, streams=[*made]):
        of_table.setdefault(row.name, set()).update(_columns(row, made))
    for name, known in of_table.items():
        if by_keys and known:
            found.append(Table(name, sorted(known)))
        else:
            why = "a condition is about one stream only" if known else "no column has the keys"
            left.append(left_table(name, why))
    return found, left


def _columns(row: sql.Output | sql.OutputTable, made: Mapping[int, Sequence[str]]) -> set[str]:
    """Return the columns that have the keys in what a group made of some streams."""
    given = [row.subject] if row.subject else [c for s in row.streams for c in made[s]]
    return {column.lower() for column in given}


def left_table(name: str, why: str) -> Remaining:
    """Return a table as one that an erasure leaves."""
    return Remaining(
        "table", name, f"it was made of the events, and {why}", "until its owner deletes the rows"
    )


def rows_in_table(connection: Connection, table: Table, keys: Sequence[str]) -> sql.EraseFromTable:
    """Return how many rows of a table have some keys, or why that can't be seen."""
    return sql.erase_from_table(connection, **table._asdict(), keys=[*keys], only_count=True)


def erase_rows_of_table(
    connection: Connection, table: Table, keys: Sequence[str], request_id: str
) -> sql.EraseFromTable:
    """Delete the rows of a table that have some keys. Returns how many, or why they are left."""
    done = sql.erase_from_table(connection, **table._asdict(), keys=[*keys], only_count=False)
    if done.erased:
        name = f"table {table.name}"
        sql.count_erased(connection, request_id=request_id, name=name, part=None, rows=done.erased)
    return done


def left_output(one: Written, why: str) -> Remaining:
    """Return a Parquet output as one that an erasure leaves."""
    return Remaining(
        "Parquet output", f"{one.name} of {one.group}", f"it was made of the events, and {why}",
        "until its owner deletes the rows",
    )  # fmt: skip


def left_of(one: Written, seen: "Looked") -> list[Remaining]:
    """Return what is to be said of an output that was searched."""
    left = [left_output(one, BLIND)] if seen.blind else []
    if seen.columns:
        left.append(several(f"output {one.name} of {one.group}", sorted(seen.columns)))
    return left


class Looked:
    """What was seen in an output: how many rows have the keys, and whether some files have no
    column that could say it."""

    def __init__(self) -> None:
        self.rows, self.blind = 0, False
        self.columns = set[str]()  # those of a file with more than one

    def add(self, rows: npt.NDArray[np.int64] | None, columns: Sequence[str] = ()) -> None:
        """Add what was seen in a file, and the columns that were searched."""
        self.columns |= set(columns) if len(columns) > 1 else set()
        self.blind = self.blind or rows is None
        self.rows += 0 if rows is None else len(rows)


def rows_with_keys(one: Written, keys: Sequence[str]) -> Looked:
    """Return how many rows of an output have some keys. Raises Unavailable."""
    seen = Looked()
    with _saying_which(one):
        for folder, path in _files(one):
            columns = list[str]()
            seen.add(_rows(one, folder, path, keys, columns), columns)
    return seen


def erase_output(database: Database, one: Written, keys: Sequence[str], request_id: str) -> Looked:
    """Erase the rows with some keys, file after file. Whoever reads a file meanwhile has the old
    one or the new one. Raises Unavailable if a file can't be read or replaced."""
    seen = Looked()
    with _saying_which(one):
        for folder, path in _files(one):
            columns = list[str]()
            rows = _rows(one, folder, path, keys, columns)
            seen.add(rows, columns)
            if rows is None or not len(rows):
                continue
            # First, and by the file: so a run that is killed and runs again counts it once.
            noted = hashlib.sha256(path.encode()).hexdigest()[:16]
            count = partial(
                sql.count_erased, request_id=request_id, name=f"{one.name} of {one.group}",
                part=noted, rows=len(rows),
            )  # fmt: skip
            database.transaction(count)
            database.transaction(partial(_erase_file, one=one, folder=folder, path=path, keys=keys))
        for folder in one.folders:
            database.transaction(partial(_tidy, one=one, folder=folder, keys=keys))
    return seen


def _erase_file(
    connection: Connection, one: Written, folder: str, path: str, keys: Sequence[str]
) -> None:
    """Write a file without the rows of some keys. Of two erasures at once, one looks at it when the
    other has replaced it: else it would bring back what the other has erased."""
    _lock(connection, one, folder)
    rows = _rows(one, folder, path, keys)
    if rows is None or not len(rows):
        return
    system, base = filesystem(one.root)
    with system.open_input_file(path) as source:
        file = pq.ParquetFile(source)
        whole, form = file.read(), form_of(file)
    if len(rows) < whole.num_rows:
        _replace(system, path, whole.filter(pa.array(~np.isin(np.arange(whole.num_rows), rows))),
                 form)  # fmt: skip
    elif failed := delete_here([(one.root, path.removeprefix(f"{base}/"))]):
        raise OSError(next(iter(failed.values())))


def _lock(connection: Connection, one: Written, folder: str) -> None:
    sql.lock_folder(connection, group=one.group, name=one.name, root=one.root, path=folder)


def _tidy(connection: Connection, one: Written, folder: str, keys: Sequence[str]) -> None:
    """Delete the folders of partitions that are named by the keys and empty, and files that an
    erasure which was killed did not come to put in place: they have the rows of others."""
    system, base = filesystem(one.root)
    wanted, started, empty = set(keys), list[str](), list[str]()
    for info in _infos(system, f"{base}/{folder}"):
        below = info.path[len(base) + 1 :]
        values = _values(f"{info.path[len(f'{base}/{folder}') :]}/")
        if info.type == fs.FileType.Directory:
            named = {values[column] for column in one.columns if column in values}
            empty += [below] if named & wanted else []
        elif _STARTED.search(info.path):
            started.append(below)
    if started:
        _lock(connection, one, folder)  # so that nobody is writing them
        delete_here([(one.root, path) for path in started])
    for path in sorted(empty, key=len, reverse=True):
        delete_if_empty(one.root, path)


@contextlib.contextmanager
def _saying_which(one: Written) -> Iterator[None]:
    """Raise Unavailable that names an output of which a file can't be read or replaced."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        raise Unavailable(
            "output_not_writable",
            f"a file of output {one.name} of group {one.group} can't be read or written without "
            f"the rows ({error}); see to the output root {one.root}, then run this again.",
        ) from error


def _files(one: Written) -> Iterator[tuple[str, str]]:
    """Yield the files of an output: the folder that counts, and the path."""
    system, base = filesystem(one.root)
    for folder in one.folders:
        for info in _infos(system, f"{base}/{folder}"):
            if info.type == fs.FileType.File and info.path.endswith(".parquet"):
                yield folder, info.path


def _infos(system: fs.FileSystem, folder: str) -> list[fs.FileInfo]:
    selector = fs.FileSelector(folder.rstrip("/"), recursive=True, allow_not_found=True)
    found: list[fs.FileInfo] = system.get_file_info(selector)
    return found


def _rows(
    one: Written, folder: str, path: str, keys: Sequence[str], searched: list[str] | None = None
) -> npt.NDArray[np.int64] | None:
    """Return which rows of a file have some keys; None if it has no column that can say it.
    `searched` gets the columns that say it."""
    system, base = filesystem(one.root)
    below = _values(path[len(f"{base}/{folder}") :])
    try:
        with system.open_input_file(path) as source:
            file = pq.ParquetFile(source)
            of_path = [column for column in one.columns if column in below]
            folders = {below[column] for column in of_path}
            if None in folders and {"", NO_VALUE} & set(keys):  # writers put them into one
                return None
            if searched is not None:
                there = {name.lower() for name in file.schema_arrow.names} & one.columns
                searched += sorted({*of_path, *there})
            if folders & set(keys):
                return np.arange(file.metadata.num_rows)
            columns = [
                field.name
                for field in file.schema_arrow
                if field.name.lower() in one.columns and has_texts(field.type)
            ]
            if not columns:
                return np.arange(0) if folders else None
            rows = file.read(columns)
    except FileNotFoundError:  # another erasure deleted it
        return np.arange(0)
    return np.flatnonzero(in_columns(columns, keys).rows(rows).to_numpy())


def _values(path: str) -> dict[str, str | None]:
    """Return the values in the names of the folders of a path, by their columns in lower case."""
    return {name.lower(): value for name, value in values_in(path).items()}


def _replace(system: fs.FileSystem, path: str, kept: pa.Table, form: Form) -> None:
    folder, _, name = path.rpartition("/")
    at_once = replaces(system)
    new = path if at_once else f"{folder}/.{name}.{uuid.uuid4().hex}"  # which no reader looks at
    try:
        with system.open_output_stream(new) as sink:
            pq.write_table(kept, sink, write_statistics=bounded(kept), **options(form))
        if not at_once:
            with contextlib.suppress(FileNotFoundError):  # Hadoop's, of the old bytes
                system.delete_file(f"{folder}/.{name}.crc")
            system.move(new, path)
    except BaseException:
        if not at_once:
            with contextlib.suppress(OSError):
                system.delete_file(new)
        raise


_STARTED = re.compile(r"/\.[^/]*\.parquet\.[0-9a-f]{32}$")  # as `_replace` names them
