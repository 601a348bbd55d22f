"""Other engines, and what they read of a published stream."""

from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any
from urllib.parse import urlencode

import duckdb
import polars
from psycopg2.extensions import parse_dsn
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from tests.world.streams import rows
from weir.database.connection import Database

Rows = list[tuple[Any, ...]]


def catalog(dsn: str) -> SqlCatalog:
    """The catalogue, as docs/engines.md opens it."""
    parts = urlencode({**parse_dsn(dsn), "options": "-csearch_path=weir"})
    return SqlCatalog("weir", uri=f"postgresql+psycopg2://?{parts}", init_catalog_tables="false")


def metadata_of(database: Database, stream: str) -> str:
    """The address of a table, for engines without a catalogue."""
    [[found]] = rows(
        database, "SELECT metadata_location FROM weir.publications WHERE stream = :s", s=stream
    )
    return str(found)


def by_pyiceberg(table: Table, snapshot: int | None = None) -> Rows:
    """All rows of a table, in order."""
    return ordered(table.scan(snapshot_id=snapshot).to_arrow().to_pylist())


def by_polars(table: Table, snapshot: int | None = None) -> Rows:
    """All rows of a table, in order."""
    return ordered(polars.scan_iceberg(table, snapshot_id=snapshot).collect().to_dicts())


def by_duckdb(metadata: str) -> Rows:
    """All rows of a table, in order."""
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as opened:
        for name in ("avro", "iceberg"):
            folder = (
                resources.files(f"duckdb_extension_{name}") / f"extensions/v{duckdb.__version__}"
            )
            opened.execute(f"LOAD '{folder / name}.duckdb_extension'")
        found = opened.execute("SELECT * FROM iceberg_scan(?)", [metadata]).to_arrow_table()
    return ordered(found.to_pylist())


def ordered(found: Sequence[dict[str, Any]]) -> Rows:
    """Rows as tuples of their columns by name, in an order of their own."""
    every = [{name: _plain(value) for name, value in row.items()} for row in found]
    return sorted((tuple(sorted(row.items())) for row in every), key=repr)


def _plain(value: Any) -> Any:
    """A value as all engines have it: maps and structs as lists of pairs, a moment in UTC."""
    if isinstance(value, datetime) and value.tzinfo:
        return value.astimezone(UTC)
    if isinstance(value, dict):
        if value.keys() == {"key", "value"}:
            return (_plain(value["key"]), _plain(value["value"]))
        return [(name, _plain(one)) for name, one in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    return value
