"""A sweep keeps files that are not what was recorded of them, and files that are no garbage."""

import os
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.world.garbage import sweep
from tests.world.streams import Lane, rows, run
from weir.annex.verification.verify import verify
from weir.compaction.run import Budget, compact
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.programs.opening import shared
from weir.settings import Settings

STREAM = "iot/readings"


@pytest.fixture
def app(database: Database, settings: Settings) -> Installation:
    check_warehouse_ownership(database, settings.warehouse)
    return Installation(settings, database)


@pytest.fixture
def lane(app: Installation) -> Lane:
    """A stream of a segment, with three files."""
    lane = Lane.made(app.database, name=STREAM, segments=1)
    for batch in range(3):
        shared(app.settings).append(STREAM, table(batch), writer_id="w", batch_id=str(batch))
    return lane


def table(batch: int) -> pa.Table:
    return pa.table({"key": [f"{batch} {i}" for i in range(10)]})


def truncated(app: Installation, lane: Lane, events: int) -> list[Path]:
    """Truncate the first events, and return the files that became garbage."""
    lane.truncate(f"0.0={events}")
    found = lane.rows("SELECT path FROM garbage ORDER BY path")
    return [Path(app.settings.warehouse, row.path) for row in found]


def swept(app: Installation) -> Mapping[str, object]:
    return sweep(app.database, app.settings.warehouse, 0.0)


def damage(app: Installation) -> list[tuple[str, str]]:
    """The paths in the view, and what is said of each."""
    found = rows(app.database, "SELECT path, what FROM weir.damage WHERE kind = 'garbage'")
    return [(row.path, row.what) for row in found]


def relative(app: Installation, file: Path) -> str:
    return os.path.relpath(file, app.settings.warehouse)


def read(app: Installation) -> int:
    return int(shared(app.settings).read(STREAM).num_rows)


@pytest.mark.parametrize("how", ["cut short", "written anew", "emptied of rows"])
def test_what_differs_from_what_was_recorded_is_kept_until_a_person_lets_it_go(
    app: Installation, lane: Lane, how: str
) -> None:
    file, other = truncated(app, lane, 20)
    if how == "cut short":
        os.truncate(file, file.stat().st_size - 1)
    elif how == "written anew":
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
    else:
        pq.write_table(pq.read_table(file).slice(5), file)
    done = swept(app)
    assert (done["deleted"], done["kept"]) == (1, 1)
    [said] = list(done["failed"])  # type: ignore[call-overload]
    assert str(said).startswith(f"{relative(app, file)} is kept (")
    assert (file.exists(), other.exists()) == (True, False)
    assert [path for path, _ in damage(app)] == [relative(app, file)]
    # Later sweeps leave it, and a look at the stream does not let it go.
    assert (swept(app)["failed"], file.exists()) == ([], True)
    assert verify(app, contents=None).repaired == 0
    assert len(damage(app)) == 1
    assert verify(app, contents=None, repair=True).repaired == 1
    assert damage(app) == []
    assert (swept(app)["deleted"], file.exists()) == (1, False)
    assert lane.rows("SELECT FROM garbage") == []


def test_a_file_that_a_killed_sweep_has_deleted_is_no_damage(app: Installation, lane: Lane) -> None:
    truncated(app, lane, 10)[0].unlink()
    done = swept(app)
    assert (done["deleted"], done["failed"], damage(app)) == (1, [], [])


def test_what_was_erased_goes_whatever_it_is(app: Installation, lane: Lane) -> None:
    file, _ = truncated(app, lane, 20)
    os.truncate(file, 10)
    assert swept(app)["kept"] == 1
    run(app.database, "UPDATE garbage SET reason = 'erased'")
    assert (swept(app)["failed"], file.exists(), damage(app)) == ([], False, [])


@pytest.mark.parametrize("named", ["file", "folder", "stream", "file of a compaction"])
def test_a_row_of_garbage_that_names_a_file_of_a_stream_deletes_nothing(
    app: Installation, lane: Lane, named: str
) -> None:
    compaction = named.endswith("compaction")
    if compaction:
        compact(app.database, app.settings, Budget(1 << 60, 1e9), thorough=True)
        run(app.database, "DELETE FROM garbage")
        run(app.database, "DELETE FROM compaction")  # pruned
    live = lane.rows("SELECT path FROM data_file ORDER BY start_offset")[0].path
    path = {"folder": f"{live.rpartition('/')[0]}/", "stream": f"{live.partition('/')[0]}/"}
    planted = path.get(named, live)
    run(
        app.database,
        "INSERT INTO garbage (root, path, stream_id, reason) VALUES ('', :path, :s, 'truncated')",
        path=planted, s=lane.stream_id,
    )  # fmt: skip
    for failures in (1, 0):
        done = swept(app)
        assert (done["deleted"], len(done["failed"])) == (0, failures)  # type: ignore[arg-type]
    assert read(app) == 30
    [(kept, what)] = damage(app)
    assert (kept, "it is no garbage" in what) == (planted, True)
    assert verify(app, contents=None, stream=STREAM, repair=True).repaired == 1
    assert (lane.rows("SELECT FROM garbage"), damage(app)) == ([], [])
    assert read(app) == 30
