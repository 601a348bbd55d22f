"""The adjunct stores of a batch as pyarrow tables: read, and joined with its events."""

from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.adjunct.pins import Pin
from weir.adjunct.versions import recorded_file
from weir.arrow.read import by_schema
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.consumers.engine import Adjuncts
from weir.consumers.store_parts import KEY, columns_of, joined_on, joined_values
from weir.controller.absent_files import why_unread
from weir.errors import InvalidInput
from weir.installation.extras import with_spark
from weir.installation.opened import Installation
from weir.kernel.comparisons import is_number
from weir.kernel.schema import in_file, to_read
from weir.model.schema import Field
from weir.warehouse.filesystem import filesystem

_CLOCK = "_weir_clock"


class Stores(Adjuncts[pa.Table]):
    """The stores of a batch: by name the table of the version that the batch is read with."""

    def __init__(
        self, app: Installation, pins: Mapping[str, Pin], manager: AdjunctStoreManager
    ) -> None:
        self.app, self.pins, self.manager = app, pins, manager
        self._read: dict[str, pa.Table] = {}

    def __getitem__(self, name: str) -> pa.Table:
        if name not in self._read:
            app, pin = self.app, self._pin(name)
            files = pin.version.files if pin.version else ()
            fields = pin.version.fields if pin.version else columns_of(app.database, pin.store)
            rows = rows_of(app, fields, [file.path for file in files])
            self._read[name] = self.manager.stored(name, rows)
        return self._read[name]

    def enrich(
        self,
        events: pa.Table,
        name: str,
        on: object,
        how: str = "left",
        *,
        as_of: bool | str = False,
        valid_from: str = "",
        prefix: str = "",
    ) -> pa.Table:
        """Return the events, in their order, with the value columns of a store. See `Adjuncts`."""
        rows = self[name]
        if as_of or valid_from:
            raise InvalidInput(
                "needs_spark",
                "only Spark can join events with what held at another time (as_of); leave as_of "
                f"out, or {with_spark()}.",
            )
        values = joined_values(name, how, events.column_names, rows.column_names, prefix)
        found = pc.index_in(_keys(events, on, rows, name), value_set=rows[KEY].combine_chunks())
        if how == "inner":
            there = pc.is_valid(found)
            events, found = events.filter(there), found.filter(there)
        for value in values:
            events = events.append_column(prefix + value, rows[value].take(found))
        return events


def _keys(events: pa.Table, on: object, rows: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the keys of events in the type of the store's. Raises InvalidInput for another type,
    and for what the events don't have."""
    wanted = rows.schema.field(KEY).type
    if isinstance(on, str):
        there = on in events.column_names
        given = events[on] if there else joined_on(on, events.schema, name).over(events).values
    elif isinstance(on, (pa.Array, pa.ChunkedArray)) and len(on) == len(events):
        given = on
    else:
        raise InvalidInput(
            "join_invalid",
            f"the key on which events are joined with adjunct store {name} is {on!r}; name a "
            "column of the events, or give an array with a key for each of them.",
        )
    with suppress(pa.ArrowException):
        if given.type == wanted or (is_number(given.type) and is_number(wanted)):
            return given.cast(wanted)
    raise InvalidInput(
        "column_type_unsupported",
        f"the keys of adjunct store {name} are of type {wanted}, but on is of type "
        f"{given.type}; cast it.",
    )


def rows_of(app: Installation, fields: list[Field], paths: list[str]) -> pa.Table:
    """Return the rows of files of a version: its columns, and `_clock`. Raises what `why_unread`
    returns for a file that can't be read."""
    schema = to_read([{**field, "nullable": True} for field in fields])
    names = [one.remove_metadata() for one in schema]
    whole = pa.schema([*names, pa.field("_clock", pa.int64())])
    system, base = filesystem(app.settings.warehouse)
    parts = [whole.empty_table()]
    for path in paths:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                file = pq.ParquetFile(source, coerce_int96_timestamp_unit="us")
                known = set(file.schema_arrow.names)
                rows = file.read([*(one for one in map(in_file, schema) if one in known), _CLOCK])
        except (OSError, pa.ArrowInvalid) as error:
            recorded = app.database.transaction(partial(recorded_file, path=path))
            raise why_unread(app.database, app.settings.warehouse, path, error, recorded) from error
        values = by_schema(rows, schema, schema.names)
        parts.append(pa.table([*values, rows[_CLOCK].cast(pa.int64())], schema=whole))
    return pa.concat_tables(parts).combine_chunks()
