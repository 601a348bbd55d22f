"""What is gone is said before Spark reads what is left. Only the plans are made here: no JVM."""

import warnings
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType

import weir
from tests.crash.jobs import write_config
from tests.raises import raises
from tests.world.streams import Lane
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.programs.opening import shared
from weir.settings import Settings
from weir.spark.reads.source import WeirSource
from weir.warehouse.marker import Marker, write_marker


@pytest.fixture
def times(database: Database, settings: Settings) -> list[datetime]:
    """The beginning of a stream, of which 20 events are truncated, and the time after these."""
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    lane = Lane.made(database, name="iot/small")
    found = [lane.value("SELECT clock_timestamp()")]
    for batch, count in (("one", 20), ("two", 5)):
        rows = pa.table({"key": [f"key {n}" for n in range(count)]})
        shared(settings).append("iot/small", rows, writer_id="w", batch_id=batch)
        if batch == "one":
            lane.truncate(", ".join(f"{name}={end}" for name, end in lane.tail().items()))
            found.append(lane.value("SELECT clock_timestamp()"))
    return found


def source(settings: Settings, **options: Any) -> WeirSource:
    config = str(write_config(settings))
    given = {name: str(value) for name, value in options.items()}
    return WeirSource({"path": "iot/small", "config": config, **given})


def batch(settings: Settings, **options: Any) -> int:
    parts = source(settings, **options).reader(StructType([])).partitions()
    return sum(one.end_row - one.first_row for part in parts for one in part.slices)  # type: ignore[attr-defined]


def first(settings: Settings, **options: Any) -> Any:
    return source(settings, **options).streamReader(StructType([])).initialOffset()


@pytest.mark.parametrize("plan", [batch, first])
def test_a_time_before_the_head_is_refused_unless_gaps_are_skipped(
    settings: Settings, times: list[datetime], plan: Any
) -> None:
    early, late = times
    with raises("events_truncated 20 iot/small hand"):
        plan(settings, since=early)
    with pytest.warns(weir.TruncatedWarning, match="^20 events of stream iot/small .* by hand"):
        begun = plan(settings, since=early, onGap="skip")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert begun == plan(settings, since=late) == plan(settings)
    assert begun == 5 or sum(begun.values()) == 20


def test_a_batch_that_is_empty_because_all_was_truncated_says_so(
    settings: Settings, times: list[datetime]
) -> None:
    with pytest.warns(weir.TruncatedWarning, match="^20 events"):
        assert batch(settings, until=times[1]) == 0
