"""Look up one key of an adjunct store, without Spark: for debugging."""

from datetime import UTC, date, datetime
from decimal import Decimal, localcontext
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import Connection

from weir.adjunct.stores import read_store
from weir.adjunct.versions import AdjunctVersion, find_version, read_version, recorded_file
from weir.controller.absent_files import why_unread
from weir.database.connection import Database
from weir.errors import NotFound
from weir.front_ends import do
from weir.kernel.schema import arrow_type
from weir.model.key_space import routing_steps
from weir.model.names import check_key
from weir.model.schema import stored_name
from weir.warehouse.filesystem import filesystem

_HASH, _CLOCK = "_weir_hash", "_weir_clock"


def look_up(
    database: Database, warehouse: str, store: str, key: object, version: int | None = None
) -> dict[str, object] | None:
    """Return what a key has in a version of a store (None: the newest): its value columns, and in
    `_clock` the clock of the event that they come from. None if the key is not there.

    `key`: a Python value of the key's type, a number that is equal to it, or its text as Spark
    casts it. Reads one row group of each file that may have the key. Raises NotFound for the store
    and the version, and what `why_unread` returns for a file that can't be read.
    """
    found = database.snapshot(lambda c: _version(c, store, version))
    text = key_text(in_type(key, str(found.fields[0]["type"])))
    position = routing_steps(check_key(text).encode())
    system, base = filesystem(warehouse)
    for file in found.files:
        if not file.low <= position <= file.high:
            continue
        try:
            with system.open_input_file(f"{base}/{file.path}") as source:
                row = _in_file(pq.ParquetFile(source), position, text, found)
        except (OSError, pa.ArrowInvalid) as error:
            known = database.transaction(partial(recorded_file, path=file.path))
            raise why_unread(database, warehouse, file.path, error, known) from error
        if row is not None:
            return row
    return None


def _version(connection: Connection, store: str, version: int | None) -> AdjunctVersion:
    known = read_store(connection, store)
    if version is not None:
        return read_version(connection, known.store_id, version)
    newest = find_version(connection, known.store_id)
    if newest is None:
        raise NotFound(
            "adjunct_version_not_found",
            f"adjunct store {store} has no version yet; {do('adjunct', adjunct_stores=[store])}.",
        )
    return newest


def _in_file(
    file: pq.ParquetFile, position: int, text: str, version: AdjunctVersion
) -> dict[str, object] | None:
    names = {file.schema_arrow.names[i]: i for i in range(len(file.schema_arrow.names))}
    kinds = {stored_name(f): arrow_type(f["type"]) for f in version.fields}
    leaf = [file.metadata.schema.column(i).path for i in range(file.metadata.num_columns)]
    for group in range(file.num_row_groups):
        bounds = file.metadata.row_group(group).column(leaf.index(_HASH)).statistics
        if not bounds.min <= position <= bounds.max:
            continue
        found = pc.indices_nonzero(pc.equal(file.read_row_group(group, [_HASH])[0], position))
        if not len(found):
            continue
        wanted = [name for f in version.fields if (name := stored_name(f)) in names]
        rows = file.read_row_group(group, [*wanted, _CLOCK]).take(found)
        columns = {n: rows[n].cast(kinds.get(n, rows[n].type)) for n in rows.column_names}
        for row in pa.table(columns).to_pylist():
            if key_text(row.pop(version.fields[0]["name"])) == text:
                clock = row.pop(_CLOCK)
                values = {f["name"]: row.get(stored_name(f)) for f in version.fields[1:]}
                return {**values, "_clock": clock}
    return None


def in_type(key: object, kind: str) -> object:
    """Return a number as one of a store's type of keys, if there is an equal one."""
    if isinstance(key, bool) or not isinstance(key, int | float | Decimal) or kind == "string":
        return key
    scale = int(kind.rstrip(")").rpartition(",")[2]) if kind.startswith("decimal") else 0
    exact = Decimal(str(key))
    if not exact.is_finite() or exact.adjusted() > 38:  # no key is that large
        return key
    with localcontext() as context:
        context.prec = 80
        rounded = exact.quantize(Decimal(1).scaleb(-scale))
    return rounded if rounded == exact else key


def key_text(key: object) -> str:
    """Return a key as the text that its hash is made of: as Spark casts it, in UTC."""
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, datetime):
        utc = key.astimezone(UTC) if key.tzinfo else key
        shown = utc.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
        return shown.rstrip("0").rstrip(".") if "." in shown else shown
    if isinstance(key, date):
        return key.isoformat()
    if isinstance(key, Decimal):
        return f"{key:f}"
    return str(key)
