"""A published stream beside its table."""

import json
from typing import Any

from pyiceberg.table import Table
from pyiceberg.table.snapshots import Snapshot

from tests.annex.publication.engines import (
    Rows,
    by_duckdb,
    by_polars,
    by_pyiceberg,
    catalog,
    metadata_of,
    ordered,
)
from tests.compaction.world import World
from weir.annex.publication.run import publish
from weir.programs.opening import shared


def published(world: World) -> Table:
    """Publish what is new, and return the table."""
    reports = publish(world.lane.database, world.settings)
    assert not [one for one in reports if "error" in one], reports
    return catalog(world.settings.database).load_table(
        (world.lane.name.scope, world.lane.name.name)
    )


def expected(world: World, end: dict[str, Any] | None = None) -> Rows:
    """What Weir reads."""
    found = shared(world.settings).read(str(world.lane.name), end=end).to_pylist()
    return ordered([{k: v for k, v in row.items() if not k.startswith("_")} for row in found])


def summary(snapshot: Snapshot) -> dict[str, str]:
    """What a snapshot says of itself."""
    assert snapshot.summary is not None
    return dict(snapshot.summary.additional_properties)


def check(world: World, table: Table) -> None:
    """The table has the rows that the stream has, in each engine, and its older snapshots those of
    their cuts."""
    want = expected(world)
    assert by_pyiceberg(table) == want
    assert by_polars(table) == want
    assert by_duckdb(metadata_of(world.lane.database, str(world.lane.name))) == want
    said = summary(table.snapshots()[-1])
    assert len(want) == int(said["total-records"]) - int(said["total-position-deletes"])
    head = world.lane.value("SELECT head FROM weir_internal.stream WHERE stream_id = :s")
    for snapshot in table.snapshots()[-3:-1]:
        cut = json.loads(summary(snapshot)["weir.cut"])
        assert world.lane.value(
            "SELECT weir_internal.at_or_before(:s, CAST(:head AS jsonb), CAST(:cut AS jsonb))",
            head=json.dumps(head), cut=json.dumps(cut),
        )  # fmt: skip
