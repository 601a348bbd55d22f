"""Damage that is planted in a copy of a warehouse is found, each kind, and nothing else."""

import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import cases, random_for
from tests.digests import rows_of_every_type
from tests.raises import raises
from tests.world.streams import Lane
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import Verified, by_pyarrow, verify
from weir.compaction.run import Budget, compact
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.model.schema import SEQ
from weir.programs.opening import shared
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

STREAM = "iot/readings"


@pytest.fixture
def app(database: Database, settings: Settings) -> Installation:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    return Installation(settings, database)


@pytest.fixture
def lane(app: Installation) -> Lane:
    """A stream of three segments, with rows of every type."""
    lane = Lane.made(app.database, name=STREAM, segments=3)
    for batch in range(3):
        rows = rows_of_every_type(random_for("rows", batch), 40)
        keys = pa.array([f"key {i}" for i in range(len(rows))])
        rows = rows.append_column("key", keys)
        shared(app.settings).append(STREAM, rows, writer_id="w", batch_id=str(batch))
    return lane


def files(app: Installation) -> list[Path]:
    return sorted(Path(app.settings.warehouse).rglob("*.parquet"))


def verified(app: Installation, *, contents: bool = True, repair: bool = False) -> Verified:
    return verify(app, contents=by_pyarrow(app, contents=True) if contents else None, repair=repair)


def found(app: Installation, lane: Lane) -> set[tuple[str, str]]:
    """What the view says: the kind, and the path."""
    return {(row.kind, row.path) for row in lane.rows("SELECT kind, path FROM weir.damage")}


def rewritten(path: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    pq.write_table(change(pq.read_table(path)), path)


def flipped(path: Path, at: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def test_what_is_as_it_was_recorded_has_no_damage(app: Installation, lane: Lane) -> None:
    done = verified(app)
    assert done.report() == {
        "streams": 1, "files": 9, "events": 120, "bytes": sum(f.stat().st_size for f in files(app)),
        "without_digest": 0, "keys_not_checked": 0, "damage": {}, "repaired": 0, "complete": True,
    }  # fmt: skip
    assert found(app, lane) == set()
    (row,) = lane.rows("SELECT * FROM weir.verified")
    assert (row.stream, row.damage) == (STREAM, 0)
    assert row.completed_at is not None


PLANTED: dict[str, tuple[str, Callable[[Path, Path], object]]] = {
    "deleted": ("missing", lambda one, other: one.unlink()),
    "truncated": ("size", lambda one, other: os.truncate(one, one.stat().st_size - 1)),
    "emptied": ("size", lambda one, other: os.truncate(one, 0)),
    "edited": ("size", lambda one, other: rewritten(one, lambda t: t.slice(1))),
    "replaced": ("size", lambda one, other: shutil.copy(other, one)),
}


@pytest.mark.parametrize("name", PLANTED)
def test_damage_of_a_file_is_found_by_its_kind_until_it_is_mended(
    app: Installation, lane: Lane, tmp_path: Path, name: str
) -> None:
    kind, plant = PLANTED[name]
    one, other = random_for(name).sample(files(app), 2)
    shutil.copy2(one, tmp_path / "backup")
    plant(one, other)
    path = str(one.relative_to(app.settings.warehouse))
    for contents in (False, True):
        done = verified(app, contents=contents)
        assert found(app, lane) == {(kind, path)}
        with raises(f"damage_found {path} weir.damage"):
            raise done.error() or AssertionError
    shutil.copy2(tmp_path / "backup", one)
    assert verified(app).error() is None
    assert found(app, lane) == set()


def test_files_of_one_size_that_were_swapped_between_commits_are_found(
    app: Installation, lane: Lane
) -> None:
    small = Lane.made(app.database, name="iot/small", segments=1)
    for value in range(1, 9):
        rows = pa.table({"key": ["a"] * 5, "v": [value] * 5})
        shared(app.settings).append("iot/small", rows, writer_id="w", batch_id=str(value))
    of_size: dict[int, list[Path]] = defaultdict(list)
    for row in small.rows("SELECT path, bytes FROM data_file WHERE stream_id = :s"):
        of_size[row.bytes].append(Path(app.settings.warehouse, row.path))
    one, other = next(some[:2] for some in of_size.values() if len(some) > 1)
    content = one.read_bytes(), other.read_bytes()
    other.write_bytes(content[0])
    one.write_bytes(content[1])
    for contents in (False, True):
        assert kinds(verified(app, contents=contents)) == {"end": 2}
    # As if footers had not been recorded: the digests tell.
    app.database.transaction(
        lambda c: c.exec_driver_sql("UPDATE data_file SET end_hash = NULL, file_hash = NULL")
    )
    assert kinds(verified(app, contents=False)) == {}
    assert kinds(verified(app)) == {"content": 2}


def test_ranks_that_are_not_those_recorded_are_found_in_footers(
    app: Installation, lane: Lane
) -> None:
    app.database.transaction(lambda c: c.exec_driver_sql(
        "UPDATE data_file SET last_seq = first_seq WHERE first_seq < last_seq"))  # fmt: skip
    done = verified(app, contents=False)
    assert kinds(done) == {"rows": 9}
    assert "it has ranks" in done.first


def test_rows_of_which_two_have_one_rank_are_found(app: Installation, lane: Lane) -> None:
    def doubled(table: pa.Table) -> pa.Table:
        ranks = table[SEQ].to_pylist()
        column = pa.array([ranks[0], *ranks[:1], *ranks[2:]], pa.int64())
        return table.set_column(table.column_names.index(SEQ), SEQ, column)

    one = next(file for file in files(app) if pq.read_metadata(file).num_rows > 2)
    rewritten(one, doubled)
    path, size = str(one.relative_to(app.settings.warehouse)), one.stat().st_size
    app.database.transaction(
        lambda c: c.exec_driver_sql(
            "UPDATE data_file SET end_hash = NULL, file_hash = NULL, bytes = %s WHERE path = %s",
            (size, path),
        )
    )
    assert kinds(verified(app)) == {"order": 1}


def kinds(done: Verified) -> dict[str, int]:
    return dict(done.damage)


@pytest.mark.random
def test_every_flip_of_a_bit_is_found(app: Installation, lane: Lane) -> None:
    several = cases(64)
    for case in range(several):
        random = random_for("flip", case)
        # The end of a small file is all of it; then as before the end of a large one.
        if without_ends := case >= several // 2:
            app.database.transaction(
                lambda c: c.exec_driver_sql("UPDATE data_file SET end_hash = NULL"))  # fmt: skip
        one = random.choice(files(app))
        before = one.read_bytes()
        at = random.randrange(len(before))
        flipped(one, at, random.randrange(8))
        done = verified(app, contents=without_ends)
        assert done.damage, (case, at, len(before))
        assert {path for _, path in found(app, lane)} == {
            str(one.relative_to(app.settings.warehouse))
        }
        one.write_bytes(before)
    assert not verified(app).damage


def test_an_unknown_file_is_named_when_nobody_can_be_writing_it(
    app: Installation, lane: Lane
) -> None:
    stray = files(app)[0].with_name("stray.parquet")
    shutil.copy(files(app)[0], stray)
    assert verified(app).damage == {}  # somebody may be writing it
    long_ago = stray.stat().st_mtime - app.settings.transaction_max - 60
    os.utime(stray, (long_ago, long_ago))
    path = str(stray.relative_to(app.settings.warehouse))
    assert kinds(verified(app)) == {"unknown": 1}
    assert found(app, lane) == {("unknown", path)}
    assert stray.exists()
    done = verified(app, repair=True)
    assert (done.repaired, kinds(done)) == (1, {})
    assert found(app, lane) == set()
    rows = lane.rows("SELECT path, reason FROM garbage")
    assert [(row.path, row.reason) for row in rows] == [(path, "unknown")]
    assert stray.exists()  # until a sweep after the grace period


def test_a_renamed_file_is_moved_back_by_a_repair(app: Installation, lane: Lane) -> None:
    one = files(app)[4]
    other = one.with_name("other.parquet")
    before = one.read_bytes()
    one.rename(other)
    names = [str(path.relative_to(app.settings.warehouse)) for path in (one, other)]
    assert kinds(verified(app)) == {"missing": 1, "renamed": 1}
    assert found(app, lane) == {("missing", names[0]), ("renamed", names[1])}
    done = verified(app, repair=True)
    assert done.repaired == 1
    assert one.read_bytes() == before
    assert not other.exists()
    assert kinds(verified(app)) == {}
    assert found(app, lane) == set()


def test_offsets_that_do_not_follow_one_another_are_found(app: Installation, lane: Lane) -> None:
    app.database.transaction(lambda c: c.exec_driver_sql(
        """DELETE FROM data_file WHERE (segment_id, start_offset) = (
            SELECT segment_id, min(start_offset) FROM data_file WHERE start_offset > 0
            GROUP BY segment_id LIMIT 1)"""))  # fmt: skip
    done = verified(app, contents=False)
    assert done.damage["offsets"] == 1
    assert "no file has offsets" in lane.rows("SELECT what FROM weir.damage")[0].what


def test_rows_in_the_segment_of_another_key_are_found(app: Installation, lane: Lane) -> None:
    app.database.transaction(lambda c: c.exec_driver_sql(
        """UPDATE segment SET key_low = key_low / 2, key_high = key_high / 2"""))  # fmt: skip
    assert verified(app).damage["segment"] == 9


def test_a_maximum_goes_through_all_files_in_turn(app: Installation, lane: Lane) -> None:
    Lane.made(app.database, name="iot/small", segments=1)
    rows = pa.table({"key": ["a"] * 5})
    for batch in "abc":
        shared(app.settings).append("iot/small", rows, writer_id="w", batch_id=batch)
    each, turns = 2 * files(app)[0].stat().st_size, []
    read = by_pyarrow(app, contents=True)
    for _ in range(12):
        done = verify(app, contents=read, most_bytes=each)
        turns.append((done.files, done.complete))
        if done.complete:
            break
    assert sum(count for count, _ in turns) >= 12
    assert len(turns) > 2
    assert len(lane.rows("SELECT * FROM weir.verified WHERE completed_at IS NOT NULL")) == 2


def test_a_stream_without_digests_says_so(app: Installation, lane: Lane) -> None:
    app.database.transaction(lambda c: c.exec_driver_sql("UPDATE time_index SET digest = NULL"))
    assert verified(app).report()["without_digest"] == 9


def compacted(app: Installation) -> Sequence[Mapping[str, Any]]:
    return compact(
        app.database, app.settings, Budget(1 << 60, 1e9), thorough=True, check=checking(app)
    )


def test_compacted_files_have_the_digests_of_their_commits(app: Installation, lane: Lane) -> None:
    before = lane.rows("SELECT sum(digest) FROM time_index")
    (done,) = compacted(app)
    assert (done["files_before"], done["files_after"]) == (9, 3)
    report = verified(app).report()
    assert (report["files"], report["events"], report["damage"]) == (3, 120, {})
    assert lane.rows("SELECT sum(digest) FROM time_index") == before
    # A row with the clock of another commit is found, although everything else is right.
    (row,) = lane.rows("SELECT path FROM data_file ORDER BY segment_id LIMIT 1")
    file = Path(app.settings.warehouse, row.path)
    clocks = pq.read_table(file)["_weir_clock"].to_pylist()
    later = pa.array([clocks[0], *clocks[:-1]])
    rewritten(file, lambda rows: rows.drop_columns(["_weir_clock"]).append_column(
        "_weir_clock", later))  # fmt: skip
    app.database.transaction(lambda c: c.exec_driver_sql(
        "UPDATE data_file SET end_hash = NULL, file_hash = NULL, bytes = %s WHERE path = %s",
        (file.stat().st_size, row.path)))  # fmt: skip
    assert kinds(verified(app)) in ({"content": 1}, {"order": 1})


def test_a_compaction_of_other_events_than_were_committed_replaces_nothing(
    app: Installation, lane: Lane
) -> None:
    app.database.transaction(lambda c: c.exec_driver_sql(
        "UPDATE time_index SET digest = digest + 1 WHERE start_offset = 0"))  # fmt: skip
    (done,) = compacted(app)
    assert "does not have what was committed" in done["error"]
    assert len(lane.rows("SELECT * FROM data_file")) == 9
