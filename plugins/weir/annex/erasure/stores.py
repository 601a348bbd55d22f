"""Erase the rows of some keys from the files of adjunct stores, of all versions and histories."""

import json
import os
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import Connection

from weir.adjunct.lookup import in_type, key_text
from weir.adjunct.stores import lock_store
from weir.annex.erasure.copies import KEY, Remaining, Searched
from weir.compaction.forms import form_of, options
from weir.controller.absent_files import why_unread
from weir.database.connection import Database
from weir.errors import Conflict
from weir.kernel.bounds import bounded
from weir.kernel.matching import has_texts, in_columns, plain_number
from weir.kernel.schema import to_read
from weir.model.key_space import routing_steps
from weir.model.plain_column import plain_column
from weir.model.schema import stored_name
from weir.queries.annex.erasure import stores as sql
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, not_writable
from weir.warehouse.paths import adjunct_folder

WAIT = 60.0  # seconds for a version that is being built
_KEY, _HASH, _ROWS = "_weir_key", "_weir_hash", 65_536  # as weir.spark.adjuncts.files writes them


@dataclass(frozen=True)
class Store:
    """An adjunct store that an erasure searches: by its key, or by a `column` of its values."""

    name: str
    store_id: int
    stream_id: int
    column: str | None


class _New(NamedTuple):
    """What takes the place of a file; `path` None if no row is left."""

    old: str
    path: str | None
    rows: int
    bytes: int
    low: int
    high: int
    erased: int


def searched_stores(
    connection: Connection, streams: Sequence[Searched], *, by_keys: bool
) -> tuple[list[Store], list[Remaining]]:
    """Return the stores of streams that an erasure of keys searches, and those that it leaves: in
    which neither the key nor a column of the values is the one that has the keys in the stream."""
    found, left = list[Store](), list[Remaining]()
    of_id = {one.stream_id: one for one in streams}
    for row in sql.stores(connection, streams=[*of_id]):
        stream = of_id[row.stream_id]
        keys = [key or stream.routing_key for key in row.keys]
        store = Store(row.name, row.store_id, row.stream_id, None)
        names = {name.lower() for name in (*stream.columns, *stream.made)}
        by_key = stream.routing_key in keys and stream.by == KEY
        columns = [
            stored_name(one)
            for one in row.fields or ()
            if one["name"].lower() in names and has_texts(to_read([one]).field(0).type)
        ]
        if not by_keys:
            left.append(_left(row.name, "a condition is about one stream only"))
            continue
        of_key = by_key or any((plain_column(key) or "").lower() in names for key in keys)
        found += [store] if of_key else []
        if not of_key or len(set(keys)) > 1:  # versions of another definition have another key
            found += [replace(store, column=column) for column in columns]
        if not (of_key or columns):
            left.append(_left(row.name, "neither its key nor a value of it has the keys"))
    return found, left


def _left(name: str, why: str) -> Remaining:
    return Remaining(
        "adjunct store", name, f"its versions have rows made of the events, and {why}",
        "until it is built anew from its stream and its older versions have expired",
    )  # fmt: skip


def rows_with(database: Database, settings: Settings, store: Store, keys: Sequence[str]) -> int:
    """Return how many rows of a store's files have some keys."""
    files = database.snapshot(lambda c: _files(c, store, keys))
    return sum(len(_rows(database, settings, store, path, keys)) for path in files)


def erase_rows(
    database: Database, settings: Settings, store: Store, keys: Sequence[str], request_id: str
) -> int:
    """Erase the rows with some keys from all files of a store, in one transaction. Returns how many
    they were.

    Raises Conflict if a version is built all the time, or if the store changes again and again."""
    until = time.monotonic() + WAIT
    while True:
        files, building = database.snapshot(
            lambda c: (_files(c, store, keys), sql.is_building(c, store_id=store.store_id))
        )
        if not building:
            written = [_written(database, settings, store, path, keys) for path in files]
            new = [one for one in written if one is not None]
            swap = partial(
                _swap, store=store, keys=keys, files=files, new=new, request_id=request_id
            )
            if database.transaction(swap):
                return sum(one.erased for one in new)
        if time.monotonic() >= until:
            raise Conflict(
                "erasure_waits",
                f"a version of adjunct store {store.name} is being built, so no row of the store "
                "was erased; run this again when the build has ended.",
            )
        time.sleep(1.0)


def _files(connection: Connection, store: Store, keys: Sequence[str]) -> list[str]:
    """Return the files that may have some keys: the database knows the hashes of theirs, of the
    texts that they have in the types of now and of before."""
    store_id, hashes = store.store_id, None
    if store.column is None:
        kinds = sql.key_types(connection, store_id=store_id)
        texts = {text for key in keys for text in _texts(key, kinds)}
        hashes = [routing_steps(text.encode()) for text in texts]
    return sql.files(connection, store_id=store_id, hashes=hashes)


def _texts(key: str, kinds: Sequence[str]) -> set[str]:
    """Return the texts that a key may have in some types: 7 is 7.00 where a column was widened."""
    plain = plain_number(key)
    if not plain.removeprefix("-").replace(".", "", 1).isdecimal():
        return {key}
    decimals = [kind for kind in kinds if kind.startswith("decimal")]
    return {key, plain, *(key_text(in_type(Decimal(plain), kind)) for kind in decimals)}


def _rows(
    database: Database, settings: Settings, store: Store, path: str, keys: Sequence[str]
) -> list[int]:
    """Return which rows of a file have some keys."""
    system, base = filesystem(settings.warehouse)
    column = _KEY if store.column is None else store.column
    try:
        with system.open_input_file(f"{base}/{path}") as source:
            file = pq.ParquetFile(source)
            if column not in file.schema_arrow.names:
                return []
            rows = file.read([column])
    except (OSError, pa.ArrowInvalid) as error:
        raise why_unread(database, settings.warehouse, path, error) from error
    if not has_texts(rows[column].type):
        wanted = set(keys)
        return [i for i, one in enumerate(rows[column].to_pylist()) if key_text(one) in wanted]
    found: list[int] = pc.indices_nonzero(in_columns([column], keys).rows(rows)).to_pylist()
    return found


def _written(
    database: Database, settings: Settings, store: Store, path: str, keys: Sequence[str]
) -> _New | None:
    """Write a file without the rows of some keys; None if it has none."""
    rows = _rows(database, settings, store, path, keys)
    if not rows:
        return None
    system, base = filesystem(settings.warehouse)
    try:
        with system.open_input_file(f"{base}/{path}") as source:
            file = pq.ParquetFile(source)
            whole, form = file.read(), form_of(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise why_unread(database, settings.warehouse, path, error) from error
    kept = whole.filter(pa.array(~np.isin(np.arange(whole.num_rows), rows)))
    if not kept.num_rows:
        return _New(path, None, 0, 0, 0, 0, len(rows))
    new = f"{os.path.dirname(path)}/part-{uuid.uuid4().hex}.parquet"
    # Garbage until it has its place, so that nothing is left if this process is killed.
    database.transaction(lambda c: sql.make_garbage(c, path=new))
    try:
        with system.open_output_stream(f"{base}/{new}") as sink:
            pq.write_table(
                kept, sink, row_group_size=_ROWS, write_page_checksum=True,
                write_statistics=bounded(kept),
                use_dictionary=[n for n in kept.column_names if n != _HASH], **options(form),
            )  # fmt: skip
            size = sink.tell()
    except OSError as error:
        raise not_writable(settings.warehouse, error) from error
    bounds = pc.min_max(kept[_HASH])
    return _New(
        path, new, kept.num_rows, size, bounds["min"].as_py(), bounds["max"].as_py(), len(rows)
    )


def _swap(
    connection: Connection, store: Store, keys: Sequence[str], files: Sequence[str],
    new: Sequence[_New], request_id: str,
) -> bool:  # fmt: skip
    """Put new files in the place of old ones. Returns False if a version is being built, or if
    other files may have the keys by now: then nothing is changed."""
    lock_store(connection, store.store_id)
    store_id, stream_id = store.store_id, store.stream_id
    if sql.is_building(connection, store_id=store_id) or _files(connection, store, keys) != files:
        return False
    written = [one.path for one in new if one.path]
    if sql.take_from_garbage(connection, paths=written) < len(written):
        # This process slept, and a sweep has deleted them.
        raise Conflict(
            "erasure_waits",
            f"files of adjunct store {store.name} were swept while they were written, so no row of "
            "the store was erased; run this again.",
        )
    old, folder = [one.old for one in new], adjunct_folder(store_id)
    as_json = json.dumps([one._asdict() for one in new])
    sql.add_files(connection, store_id=store_id, new=as_json)
    sql.count_less(connection, store_id=store_id, new=as_json)
    sql.add_to_versions(connection, store_id=store_id, new=as_json)
    sql.discard_files(connection, store_id=store_id, stream_id=stream_id, new=as_json)
    sql.let_garbage_go(connection, stream_id=stream_id, folder=folder)
    sql.remove_from_versions(connection, store_id=store_id, old=old)
    sql.remove_files(connection, store_id=store_id, old=old)
    rows = sum(one.erased for one in new)
    sql.count_erased(connection, request_id=request_id, name=store.name, rows=rows)
    return True
