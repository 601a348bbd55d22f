"""Recorded cuts are proven: the footers of new files are compared with what was recorded, once."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.world.streams import Lane, run
from weir.annex.verification.footers import Wrong, look_here
from weir.annex.verification.prove import Proven, must_be_right, prove, said_of
from weir.annex.verification.recorded import Recorded
from weir.annex.verification.verify import by_pyarrow, verify
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.programs.opening import shared
from weir.retention.capture import capture
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

STREAM = "iot/readings"


@pytest.fixture
def app(database: Database, settings: Settings) -> Installation:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Installation(settings, database)


@pytest.fixture
def lane(app: Installation) -> Lane:
    return Lane.made(app.database, name=STREAM, segments=2)


class Looks:
    """Looks at footers, and keeps which files were looked at."""

    def __init__(self) -> None:
        self.paths: list[list[str]] = []

    def __call__(self, warehouse: str, files: Sequence[Recorded]) -> list[Wrong]:
        self.paths.append([file.path for file in files])
        return look_here(warehouse, files)


def append(app: Installation, batch: str, stream: str = STREAM) -> list[Path]:
    """Append ten rows, and return their files."""
    before = {*Path(app.settings.warehouse).rglob("*.parquet")}
    table = pa.table({"key": [f"{batch} {i}" for i in range(10)]})
    shared(app.settings).append(stream, table, writer_id="w", batch_id=batch)
    return sorted({*Path(app.settings.warehouse).rglob("*.parquet")} - before)


def recorded(app: Installation, look: Looks | None = None, most: int = 20_000) -> Proven:
    """Record the tails and prove them, as the job does."""
    capture(app.database)
    return prove(app, look or look_here, most)


def proven(lane: Lane) -> list[bool]:
    """Whether each cut of the stream is proven, the oldest first."""
    found = lane.rows(
        "SELECT proven_at FROM weir.retention_set WHERE stream = :name ORDER BY recorded_at",
        name=str(lane.name),
    )
    return [row.proven_at is not None for row in found]


def test_each_new_file_is_looked_at_once_and_none_at_rest(app: Installation, lane: Lane) -> None:
    looks = Looks()
    files = append(app, "a")
    done = recorded(app, looks)
    base = app.settings.warehouse
    assert looks.paths == [[os.path.relpath(file, base) for file in files]]
    assert (done.seen.files, done.seen.events, proven(lane)) == (2, 10, [True])
    for _ in range(2):
        assert recorded(app, looks).seen.files == 0
    assert len(looks.paths) == 1
    more = append(app, "b")
    recorded(app, looks)
    assert looks.paths[1:] == [[os.path.relpath(file, base) for file in more]]
    assert proven(lane) == [True, True]
    assert lane.value("SELECT proven_until IS NOT NULL FROM weir.verified")


def test_a_stream_with_damage_has_cuts_that_are_proven_once_it_is_mended(
    app: Installation, lane: Lane, tmp_path: Path
) -> None:
    other = Lane.made(app.database, name="iot/other", segments=1)
    append(app, "a")
    append(app, "a", "iot/other")
    recorded(app)
    file = append(app, "b")[0]
    append(app, "b", "iot/other")
    shutil.copy2(file, tmp_path / "backup")
    os.truncate(file, file.stat().st_size - 1)
    done = recorded(app)
    assert (proven(lane), proven(other)) == ([True, False], [True, True])
    with raises(f"damage_found {os.path.relpath(file, app.settings.warehouse)} weir.damage"):
        must_be_right(done, {"proven": done.report()})
    assert [row.kind for row in lane.rows("SELECT kind FROM weir.damage")] == ["size"]
    assert lane.rows("SELECT stream, words FROM weir.troubles") == [(STREAM, "1 damaged file")]
    # Later runs say so, and fail no more; nor do they read the file again.
    append(app, "c")
    done = recorded(app)
    must_be_right(done, {})
    assert said_of(done.report()).endswith(f"1 stream not proven, see weir.damage: {STREAM}")
    assert proven(lane) == [True, False, False]
    shutil.copy2(tmp_path / "backup", file)
    assert verify(app, contents=by_pyarrow(app, contents=True)).error() is None
    looks = Looks()
    assert recorded(app, looks).damaged == []
    assert (looks.paths, proven(lane)) == ([], [True, True, True])


def test_a_stream_with_very_many_new_files_goes_on_in_the_next_run(
    app: Installation, lane: Lane
) -> None:
    few = Lane.made(app.database, name="iot/few", segments=1)
    for batch in "abcdefgh":
        append(app, batch)
    append(app, "a", "iot/few")
    looks = Looks()
    done = recorded(app, looks, most=5)
    assert (len(looks.paths[0]), done.behind) == (5, [STREAM])
    assert (proven(lane), proven(few)) == ([False], [True])
    assert "1 stream left for the next run" in said_of(done.report())
    append(app, "i")
    while proven(lane) != [True, True]:
        recorded(app, looks, most=5)
        assert len(looks.paths) < 6
    every = [path for paths in looks.paths for path in paths]
    assert len(every) == len({*every}) == 9 * 2 + 1


def test_a_file_that_was_truncated_while_it_was_looked_at_is_no_damage(
    app: Installation, lane: Lane
) -> None:
    files = append(app, "a")

    def late(warehouse: str, some: Sequence[Recorded]) -> list[Wrong]:
        lane.truncate(", ".join(f"{k}={v}" for k, v in lane.value("SELECT tail_cut(:s)").items()))
        for file in files:
            file.unlink()
        return look_here(warehouse, some)

    capture(app.database)
    done = prove(app, late)
    assert (done.seen.files, done.seen.error(), done.damaged) == (2, None, [])
    assert proven(lane) == [True]


def test_a_run_that_was_killed_after_its_look_is_done_by_the_next_one(
    app: Installation, lane: Lane
) -> None:
    append(app, "a")[0].unlink()

    def killed(warehouse: str, some: Sequence[Recorded]) -> list[Wrong]:
        look_here(warehouse, some)
        raise KeyboardInterrupt

    capture(app.database)
    with pytest.raises(KeyboardInterrupt):
        prove(app, killed)
    assert (proven(lane), lane.rows("SELECT FROM weir.damage")) == ([False], [])

    def beside(warehouse: str, some: Sequence[Recorded]) -> list[Wrong]:
        assert dict(prove(app, look_here).seen.damage) == {"missing": 1}
        return look_here(warehouse, some)

    assert dict(prove(app, beside).seen.damage) == {"missing": 1}
    assert len(lane.rows("SELECT FROM weir.damage")) == 1


def test_a_warehouse_that_is_away_is_no_damage(
    app: Installation, lane: Lane, tmp_path: Path
) -> None:
    append(app, "a")
    warehouse = Path(app.settings.warehouse)
    warehouse.rename(tmp_path / "away")
    with raises("warehouse_not_owned"):
        recorded(app)
    assert lane.rows("SELECT FROM found_damage") == []
    (tmp_path / "away").rename(warehouse)
    recorded(app)
    assert proven(lane) == [True]


def test_contents_are_read_in_turn_when_something_is_new_and_each_once_an_hour(
    app: Installation, lane: Lane
) -> None:
    append(app, "a")
    done = recorded(app)
    assert done.read is not None
    assert (done.read.files, done.read.complete) == (2, True)
    append(app, "b")
    read = recorded(app).read
    assert read is not None
    assert read.files == 0
    run(app.database, "UPDATE verification SET completed_at = completed_at - interval '1 hour'")
    assert recorded(app).read is None
    append(app, "c")
    read = recorded(app).read
    assert read is not None
    assert read.files == 6
