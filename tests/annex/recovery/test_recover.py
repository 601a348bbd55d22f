"""A database restored from a backup deletes nothing, and hands out nothing twice."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

import weir.annex.recovery.recover as recover_module
from tests.raises import raises
from tests.world.adjunct import Store
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import Lane, rows, unique
from weir.annex.recovery import inventory
from weir.annex.recovery.inventory import Known
from weir.annex.recovery.recover import RecoverReport, recover
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.warehouse.marker import RECOVERY_GAP


def write(lane: Lane, warehouse: Path) -> None:
    """The files of a stream that are not there yet, and those of its open appends."""
    open_ones = lane.rows(
        "SELECT * FROM transaction WHERE stream_id = :s AND state = 'open'",
    )
    paths = [file.path for file in lane.files()]
    paths += [
        f"{lane.stream_id}/_weir_tx={t.transaction_number}/_weir_attempt={t.attempt}/"
        "_weir_segment=0/_weir_task=0/part.parquet"
        for t in open_ones
    ]
    for path in paths:
        (warehouse / path).parent.mkdir(parents=True, exist_ok=True)
        (warehouse / path).write_text("rows")


def on_disk(warehouse: Path) -> set[str]:
    found = (p for p in warehouse.rglob("*") if p.is_file())
    return {str(p.relative_to(warehouse)) for p in found if not p.name.startswith("_weir")}


class Story:
    """A stream before a backup, and what happens to it after; then the backup is restored."""

    def __init__(
        self, database: Database, warehouse: Path, restore: Callable[[Database], Database]
    ) -> None:
        self.warehouse = warehouse
        check_warehouse_ownership(database, str(warehouse))
        before = Lane.made(database)
        before.append({"0.0": [2, 3], "1.0": 4})
        before.opened("in flight")
        self.group = Group.made(before)
        write(before, warehouse)
        sweep(database, str(warehouse), 0.0)
        self.database = restore(database)
        self.lane = Lane(self.database, before.name, before.stream_id)
        # What the backup does not know.
        before.append({"0.0": 7})
        before.scale("0.0")
        self.lost = [before.append({name: 5}) for name in before.active()]
        other = Lane.made(database)
        other.append({"0.0": 1})
        self.other = other
        for one in (before, other):
            write(one, warehouse)
        self.segments = set(before.sizes())
        before.truncate("0.0=2, 1.0=0")
        sweep(database, str(warehouse), 0.0)

    def sweep(self) -> Mapping[str, Any]:
        return sweep(self.database, str(self.warehouse), 0.0)

    def recover(self, what: str) -> RecoverReport:
        return recover(
            self.database, str(self.warehouse), unknown_files=what, request_id=unique("recover")
        )


@pytest.fixture
def story(database: Database, tmp_path: Path, restore: Callable[[Database], Database]) -> Story:
    return Story(database, tmp_path, restore)


def test_a_restored_database_deletes_and_appends_nothing(story: Story) -> None:
    there = on_disk(story.warehouse)
    story.lane.truncate("0.0=5, 1.0=4")  # what it has recorded becomes garbage
    with raises("database_restored weir recover"):
        story.sweep()
    with raises("database_restored weir recover"):
        check_warehouse_ownership(story.database, str(story.warehouse))
    assert on_disk(story.warehouse) == there


def test_a_report_says_what_is_unknown_and_missing_and_changes_nothing(story: Story) -> None:
    there = on_disk(story.warehouse)
    before = rows(story.database, "SELECT * FROM stream")
    report = story.recover("report")
    # Seven, five in each of three segments, and the other stream; and what was being written.
    assert (report["restored"], report["unknown_files"], report["missing_files"]) == (True, 6, 1)
    assert report["missing"] == [story.lane.files("0.0")[0].path]
    assert rows(story.database, "SELECT * FROM stream") == before
    assert on_disk(story.warehouse) == there
    with pytest.raises(InvariantViolation):
        story.sweep()


def test_nothing_is_handed_out_twice_and_unknown_files_are_kept(story: Story) -> None:
    unknown = set(story.recover("report")["unknown"])
    done = story.recover("keep")
    assert [one["forgotten"] for one in done["streams"]] == [1]
    assert story.sweep()["deleted"] == 0
    assert unknown <= on_disk(story.warehouse)
    numbers = {tx.transaction_number for tx in story.lost}
    active = story.lane.active()
    assert not set(active) & story.segments
    appended = story.lane.append({active[0]: 3})
    assert appended.transaction_number > max(numbers)
    assert appended.clock > max(tx.clock for tx in story.lost)
    [[sequence]] = rows(story.database, "SELECT last_value FROM stream_stream_id_seq")
    assert sequence > story.other.stream_id
    assert Lane.made(story.database).stream_id > story.other.stream_id
    # A group's id is in the names of its outputs.
    made = Group.made(story.lane)
    [[group_id]] = rows(
        story.database, "SELECT group_id FROM reader_group WHERE name = :n", n=made.name
    )
    assert group_id > RECOVERY_GAP
    # The group reads on: what it knows, then what comes now.
    group = Group(story.database, story.group.name, (story.lane,))
    assert sum(end - start for _, start, end in group.reader().read_all()) == 12
    group.check_positions()


def test_an_open_batch_is_begun_again_beyond_the_attempts_that_there_may_have_been(
    story: Story,
) -> None:
    """They have folders: one of them may be the one that was published before the restore."""
    group = Group(story.database, story.group.name, (story.lane,))
    begun = group.reader().must_open()
    story.recover("keep")
    again = group.reader().must_open()
    assert (again.batch_id, again.bounds) == (begun.batch_id, begun.bounds)
    assert again.attempt > RECOVERY_GAP


def test_unknown_files_are_deleted_when_somebody_says_so(story: Story) -> None:
    story.recover("delete")
    story.sweep()
    known = {file.path for file in story.lane.files()}
    assert on_disk(story.warehouse) == known - {story.lane.files("0.0")[0].path}
    assert rows(story.database, "SELECT path FROM garbage") == []
    assert story.recover("report")["unknown_files"] == 0


def test_what_was_aborted_before_somebody_decided_is_kept_too(story: Story) -> None:
    # The backup has the append open; nobody knows whether it was committed after it.
    there = on_disk(story.warehouse)
    abort(story.database, story.lane.opened("in flight"))
    dead = rows(story.database, "SELECT path FROM garbage ORDER BY path")
    [written] = [path for path in there if path.startswith(dead[0].path)]
    assert written in story.recover("report")["unknown"]
    done = story.recover("keep")
    assert [one["forgotten"] for one in done["streams"]] == [1]
    assert story.sweep()["deleted"] == 0
    assert on_disk(story.warehouse) == there


def test_files_of_adjunct_stores_are_known_missing_and_unknown_like_those_of_streams(
    database: Database, tmp_path: Path, restore: Callable[[Database], Database]
) -> None:
    def write_files() -> None:
        for file in version.files:
            (tmp_path / file.path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file.path).write_text("rows")

    check_warehouse_ownership(database, str(tmp_path))
    lane = Lane.made(database)
    store = Store.made(lane, keep_versions=1)
    lane.append({"0.0": 1})
    write(lane, tmp_path)
    version = store.build()
    [kept] = version.files
    restored = restore(database)
    write_files()
    lane.append({"0.0": 1})
    write(lane, tmp_path)
    version = store.build()
    [lost] = version.files
    write_files()
    report = recover(restored, str(tmp_path), request_id="look")
    assert lost.path in report["unknown"]
    assert (report["unknown_files"], report["missing_files"]) == (2, 0)
    (tmp_path / kept.path).unlink()
    done = recover(restored, str(tmp_path), unknown_files="delete", request_id="r")
    assert done["missing"] == [kept.path]
    sweep(restored, str(tmp_path), 0.0)
    assert on_disk(tmp_path) == {file.path for file in lane.files()[:1]}
    # No number is given to another version.
    again = Lane(restored, lane.name, lane.stream_id)
    again.append({again.active()[0]: 1})
    assert Store(restored, store.name, again).begun().version > RECOVERY_GAP


def test_recovering_again_is_harmless(story: Story) -> None:
    story.recover("keep")
    again = story.recover("keep")
    assert again["restored"] is False
    assert story.sweep()["deleted"] == 0


def test_the_database_that_was_not_restored_is_told_apart_afterwards(
    story: Story, database: Database
) -> None:
    # Both can't go on with one warehouse: the one that is behind is stopped.
    story.recover("keep")
    story.sweep()
    with raises("database_restored weir recover"):
        sweep(database, str(story.warehouse), 0.0)


def test_another_warehouse_is_not_recovered(story: Story, tmp_path: Path) -> None:
    with raises("warehouse_not_owned elsewhere file mounted"):
        recover(story.database, str(tmp_path / "elsewhere"), request_id="r")
    with raises("argument_invalid unknown_files 'burn'"):
        story.recover("burn")


def test_what_is_committed_while_the_warehouse_is_listed_lives_on(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_warehouse_ownership(database, str(tmp_path))
    lane = Lane.made(database)
    lane.append({"0.0": 1})
    staged = lane.opened()
    write(lane, tmp_path)
    read = inventory.known_files
    seen: list[Known] = []

    def known(connection: Connection) -> Known:
        found = read(connection)
        seen.append(found)
        if len(seen) == 2:  # the listing is over
            lane.commit(staged, {"0.0": 7})
            lane.append({"0.0": 2})
        return found

    with monkeypatch.context() as patch:
        patch.setattr(recover_module, "known_files", known)
        report = recover(database, str(tmp_path), unknown_files="delete", request_id="r")
    write(lane, tmp_path)
    assert report["missing_files"] == 0
    sweep(database, str(tmp_path), 0.0)
    assert {file.path for file in lane.files()} <= on_disk(tmp_path)
    assert len(lane.files()) == 3
    # And what is appended while it looks is not missing.
    listed = inventory.list_files

    def then_append(warehouse: str) -> Any:
        found = listed(warehouse)
        lane.append({lane.active()[0]: 1})
        write(lane, tmp_path)
        return found

    monkeypatch.setattr(recover_module, "list_files", then_append)
    report = recover(database, str(tmp_path), request_id="look")
    assert (report["missing_files"], report["unknown_files"]) == (0, 0)
