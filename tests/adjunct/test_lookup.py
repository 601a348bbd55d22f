"""A key that is looked up has the text that Spark makes of it, and values of its columns' types."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.world.adjunct import Store
from tests.world.columns import column
from tests.world.streams import Lane
from weir.adjunct.lookup import in_type, key_text, look_up
from weir.consumers.store_parts import KEY
from weir.database.connection import Database
from weir.model.key_space import routing_steps
from weir.queries.adjunct.versions import AdjunctFile
from weir.settings import Settings

NEW_YORK = timezone(timedelta(hours=-4))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", "a"),
        (7, "7"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (date(2013, 6, 1), "2013-06-01"),
        (datetime(2013, 6, 1, 9, tzinfo=UTC), "2013-06-01 09:00:00"),
        (datetime(2013, 6, 1, 5, tzinfo=NEW_YORK), "2013-06-01 09:00:00"),
        (datetime(2013, 6, 1, 9, 0, 0, 120_000), "2013-06-01 09:00:00.12"),
    ],
)
def test_a_key_is_looked_up_by_the_text_that_spark_casts_it_to_in_utc(key: Any, text: str) -> None:
    assert key_text(key) == text


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        (7.0, "long", "7"),
        (7.5, "long", "7.5"),
        (7, "decimal(9,2)", "7.00"),
        (7.001, "decimal(9,2)", "7.001"),
        (1e300, "decimal(38,10)", "1e+300"),
        (float("nan"), "long", "nan"),
        (True, "boolean", "true"),
        (7.0, "string", "7.0"),
    ],
)
def test_a_number_is_looked_up_in_the_type_of_the_keys(key: Any, kind: str, text: str) -> None:
    assert key_text(in_type(key, kind)) == text


def test_a_value_is_of_the_type_that_its_column_was_widened_to(
    database: Database, settings: Settings
) -> None:
    store, position = Store.made(Lane.made(database, segments=1)), routing_steps(b"a")
    build = store.begun()
    path = f"{build.folder}table/part.parquet"
    Path(settings.warehouse, path).parent.mkdir(parents=True)
    given = {
        KEY: ["a"], "n": pa.array([7], pa.int32()), "d": [date(2024, 1, 1)], "l": [[1, None]],
        "_weir_hash": [position], "_weir_clock": [7],
    }  # fmt: skip
    pq.write_table(pa.table(given), Path(settings.warehouse, path))
    kinds = {KEY: "string", "n": "decimal(12,2)", "d": "timestamp_ntz", "l": "array<decimal(22,2)>"}
    fields = [column(name, kind) for name, kind in kinds.items()]
    store.publish(build, fields=fields, files=[AdjunctFile(path, 1, 1, position, position)])
    found = look_up(database, settings.warehouse, store.name, "a")
    assert repr(found) == repr({
        "n": Decimal("7.00"), "d": datetime(2024, 1, 1), "l": [Decimal("1.00"), None], "_clock": 7,
    })  # fmt: skip
