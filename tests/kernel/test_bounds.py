"""A Parquet file has no bounds of a column with a NaN, by which engines would skip its rows."""

import io
import math
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from tests.compaction.world import EVER
from weir.compaction.run import compact
from weir.kernel.bounds import bounded
from weir.model.names import stream_name
from weir.settings import Settings

NAN = math.nan
KINDS: dict[str, tuple[pa.DataType, Any, Any]] = {  # with a NaN, without one
    "x": (pa.float64(), NAN, 1.0),
    "f": (pa.float32(), NAN, 1.0),
    "s": (pa.struct([("x", pa.float64()), ("n", pa.int32())]), {"x": NAN}, {"x": 1.0, "n": 1}),
    "l": (pa.list_(pa.float64()), [1.0, NAN], [1.0]),
    "m": (pa.map_(pa.string(), pa.float64()), [("a", NAN)], [("a", 1.0)]),
    "d": (pa.list_(pa.struct([("x", pa.float64())])), [{"x": NAN}], [None]),
}


def leaves_with_bounds(rows: pa.Table) -> dict[str, bool]:
    """Write rows, and return the paths of the leaves, and whether they have bounds."""
    made = io.BytesIO()
    pq.write_table(rows, made, write_statistics=bounded(rows))
    group = pq.ParquetFile(made).metadata.row_group(0)
    columns = [group.column(i) for i in range(group.num_columns)]
    return {
        one.path_in_schema: one.statistics is not None and one.statistics.has_min_max
        for one in columns
    }


@pytest.mark.parametrize("name", KINDS)
def test_a_column_with_a_nan_has_no_bounds_and_others_have(name: str) -> None:
    kind, with_nan, without = KINDS[name]
    more = {"k": pa.array(["a", "b"]), "y": pa.array([1.0, 2.0])}
    found = leaves_with_bounds(pa.table({name: pa.array([with_nan, without], kind), **more}))
    left = {path for path, has in found.items() if not has}
    assert found["k"]
    assert found["y"]
    assert len(left - {"s.n"}) == 1
    assert min(left - {"s.n"}).split(".")[0] == name
    assert bounded(pa.table({name: pa.array([without, without], kind), **more})) is True


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_duckdb_finds_a_nan_in_what_was_appended_and_compacted(
    settings: Settings, kind: pa.DataType
) -> None:
    """To DuckDB, NaN is larger than 100."""
    commits: list[list[Any]] = [[NAN, 1.0, 2.0], [NAN], [-0.0, 0.0], [None, math.inf], [5.0]]
    with weir.open(settings=settings) as store:
        store.create_stream("t/x", "k")
        for values in commits:
            rows = pa.table({"k": ["a"] * len(values), "x": pa.array(values, kind)})
            store.append("t/x", rows)
        files = f"{settings.warehouse}/*/*/*/*/*/*.parquet"

        def found(condition: str) -> int:
            query = f"SELECT count(*) FROM read_parquet('{files}') WHERE {condition}"
            [[count]] = duckdb.sql(query).fetchall()
            return int(count)

        asked = {"x > 100": 3, "x <> 1": 7, "NOT (x < 5)": 4, "x IN (0, 1)": 3, "x IS NULL": 1,
                 "isnan(x)": 2}  # fmt: skip
        assert {one: found(one) for one in asked} == asked
        [done] = compact(store.database, settings, EVER, [stream_name("t/x")], thorough=True)
        assert done["files_after"] == 1
        [[path]] = store.database.transaction(
            lambda c: c.exec_driver_sql("SELECT path FROM data_file").fetchall()
        )
        files = f"{settings.warehouse}/{path}"
        assert {one: found(one) for one in asked} == asked
