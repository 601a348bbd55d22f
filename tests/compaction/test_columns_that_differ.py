"""Neighbours whose files have other columns, or store them in other ways."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.compaction.world import EVER
from tests.world.columns import column
from tests.world.streams import Lane, unique
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import by_pyarrow, verify
from weir.compaction.run import compact
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.programs.opening import shared
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

NESTED = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
MORE: list[dict[str, pa.Array]] = [
    {},
    {"b": pa.array([1, None]), "s": pa.array([{"x": 1, "y": ["a"]}, None], NESTED)},
    {"b": pa.array([None, 2])},
    {"m": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int64()))},
]


@pytest.fixture
def lane(database: Database, settings: Settings) -> Lane:
    """A stream of one segment, in which each column but the key may be absent."""
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    made = Lane.made(
        database, 1, fields=[column("key", "string"), column("n", "long")], on_new_column="add"
    )
    append(made, settings, 0, dict(entry for more in MORE for entry in more.items()))
    return made


def append(lane: Lane, settings: Settings, n: int, more: dict[str, pa.Array]) -> None:
    table = pa.table({"key": ["x", "y"], "n": pa.array([n, n + 1]), **more})
    shared(settings).append(str(lane.name), table, writer_id="w", batch_id=unique("b"))


def read(lane: Lane, settings: Settings) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shared(settings).read(str(lane.name)).to_pylist()
    return found


def test_files_that_lack_columns_are_put_together_with_nulls_and_the_same_digests(
    lane: Lane, settings: Settings
) -> None:
    for n in range(20):
        append(lane, settings, n, MORE[n % len(MORE)])
    before = read(lane, settings)
    app = Installation(settings, lane.database)
    done = compact(lane.database, settings, EVER, [lane.name], check=checking(app))
    assert [(one["files_before"], one["files_after"]) for one in done] == [(21, 1)]
    assert read(lane, settings) == before
    verify(app, contents=by_pyarrow(app, contents=True), repair=False)
    assert lane.rows("SELECT kind, path, what FROM weir.damage") == []


def test_files_that_cant_be_put_together_are_looked_at_once_and_said_to_stay(
    lane: Lane, settings: Settings
) -> None:
    for n in range(13):
        append(lane, settings, n, {})
        if n % 2 == 0:  # as another engine may store it
            path = Path(settings.warehouse, lane.files()[-1].path)
            pq.write_table(pq.read_table(path), path, compression="zstd")
    other = Lane.made(lane.database, 1, fields=[column("key", "string"), column("n", "long")])
    for n in range(8):
        append(other, settings, n, {})
    names, budget = [lane.name, other.name], replace(EVER, bytes=5_000)

    def run(**how: Any) -> Sequence[Mapping[str, Any]]:
        return compact(lane.database, settings, budget, names, **how)

    second, first = run()
    assert (first["stream"], first["files_apart"]) == (str(lane.name), 14)
    assert (second["stream"], second["files_before"]) == (str(other.name), 8), (
        "what is not written again takes nothing of the budget"
    )
    assert run() == []
    why = "SELECT apart FROM weir.small_files WHERE stream = :n"
    [(said,)] = lane.rows(why, n=str(lane.name))
    assert "store columns in different ways" in said
    assert first["why"] == said
    assert run(thorough=True) == [first]
    append(lane, settings, 99, {})
    assert lane.rows(why, n=str(lane.name)) == [(None,)]
    assert run()[0]["files_apart"] == 15
    for n in range(8):
        append(lane, settings, n, {})
    assert run()[0]["files_before"] == 9, "the newest, which no other one divides"


def test_files_between_which_the_columns_were_changed_are_said_to_stay(
    lane: Lane, settings: Settings
) -> None:
    """Each append has one column more than the one before, so no two neighbours have the same."""
    for n in range(6):
        more = {f"c{i}": pa.array([i, None]) for i in range(n + 1)}
        append(lane, settings, n, more)
    names = [lane.name]
    [said] = compact(lane.database, settings, EVER, names, thorough=True)
    assert (said["stream"], said["files_apart"]) == (str(lane.name), 7)
    assert "columns of the stream were changed" in said["why"]
    assert compact(lane.database, settings, EVER, names) == [], "upkeep says it in the view only"
    found = lane.rows("SELECT apart FROM weir.small_files WHERE stream = :n", n=str(lane.name))
    assert found == [(said["why"],)]
    append(lane, settings, 9, {f"c{i}": pa.array([i, None]) for i in range(6)})
    [done] = compact(lane.database, settings, EVER, names, thorough=True)
    assert done["files_before"] == 2
