"""DuckDB with the streams of an installation attached as a DuckLake."""

import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pyarrow as pa

# rowid is made of the number of the segment and the offset.
_PLACES = "rowid >> 41 AS _number, rowid & 2199023255551 AS _offset, snapshot_id AS _clock"


class Duck:
    """Short ways to ask."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(sql).fetchall()

    def rows(self, stream: object, at: str = "") -> list[dict[str, Any]]:
        """Return the rows of a stream, by segment and offset."""
        scope, name = str(stream).split("/")
        found = self.connection.execute(
            f"""SELECT *, {_PLACES} FROM weir."{scope}"."{name}" {at}
            ORDER BY _number, _offset, _clock"""
        )
        return list(found.to_arrow_table().to_pylist())


@contextmanager
def attached(dsn: str, mode: str = "READ_ONLY, METADATA_SCHEMA 'weir_ducklake'") -> Iterator[Duck]:
    """Yield a DuckDB that reads what a login may see, in a time zone far from UTC."""
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as connection:
        packages = sysconfig.get_path("purelib")
        for name in ("ducklake", "postgres_scanner"):
            file = f"extensions/v{duckdb.__version__}/{name}.duckdb_extension"
            connection.execute(f"LOAD '{packages}/duckdb_extension_{name}/{file}'")
        connection.execute("SET TimeZone = 'Pacific/Auckland'")
        dsn = dsn.replace("'", "''")
        connection.execute(f"ATTACH 'ducklake:postgres:{dsn}' AS weir ({mode})")
        yield Duck(connection)


def seen(table: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of a `weir.read`, as `Duck.rows` has them."""
    rows = table.to_pylist()
    for row in rows:
        row["_number"] = row.pop("_segment") & 0xFFFFFFFF
    return sorted(rows, key=lambda row: (row["_number"], row["_offset"], row["_clock"]))
