"""A group that is changed, reset, forked or deleted."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.controller.support import Lane, rows, unique
from tests.raises import raises
from tests.reader_groups.support import Group
from weir.database.connection import Database
from weir.errors import Fenced, NotFound, Truncated
from weir.reader_groups.batches import Batch
from weir.reader_groups.checkpoints import checkpoint
from weir.reader_groups.groups import create_reader_group, delete_reader_group, fork_reader_group
from weir.reader_groups.outputs import record_output
from weir.reader_groups.pins import Pin
from weir.reader_groups.readers import reader_offline
from weir.reader_groups.reset import reset_reader_group
from weir.reader_groups.update import update_reader_group
from weir.retention.release import release
from weir.retention.run import retain
from weir.warehouse.garbage import sweep
from weir.warehouse.ownership import Marker, read_installation, write_marker


def reset(group: Group, to: str, **options: Any) -> dict[str, Any]:
    return reset_reader_group(group.database, group.name, to, request_id=unique("reset"), **options)


def update(group: Group, **changes: Any) -> dict[str, Any]:
    return update_reader_group(group.database, group.name, request_id=unique("update"), **changes)


def fork(group: Group, **options: Any) -> Group:
    name = unique("fork")
    fork_reader_group(group.database, group.name, name, request_id=unique("request"), **options)
    return Group(group.database, name, group.lanes)


@pytest.fixture
def group(lane: Lane) -> Group:
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    return Group.made(lane)


# Where a group begins.


def test_a_group_begins_at_a_cut_at_a_time_and_stops_at_another(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    at: datetime = lane.value("SELECT clock_timestamp()")
    lane.append({"0.0": 3})
    timed = Group.made(lane, start=f"time {at.isoformat()}")
    assert timed.cut() == {"0.0": 5, "1.0": 5}
    between = Group.made(lane, start="0.0=2, 1.0=1", end="0.0=6, 1.0=3")
    assert sorted(between.reader().read_all()) == [("0.0", 2, 6), ("1.0", 1, 3)]
    lane.append({"0.0": 3, "1.0": 4})
    assert between.reader().read_all() == []


def test_a_place_that_names_a_stream_which_is_not_asked_for_is_refused(lane: Lane) -> None:
    group = Group.made(lane, release="manual")
    lane.append({"0.0": 3})
    cut = {"0.0": 1, "1.0": 0}
    release(lane.database, group.name, json.dumps({str(lane.name): cut}), request_id=unique("r"))
    place = json.dumps({str(lane.name): cut, "no/such": {"0.0": 1}})
    says = f"position_has_extra_stream no/such {lane.name}"
    with raises(says):
        release(lane.database, group.name, place, request_id=unique("r"))
    with raises(says):
        Group.made(lane, start=place)


@pytest.mark.parametrize(
    ("start", "says"),
    [
        ("yesterday", "position_invalid 'yesterday'"),
        ("0.0=1, x", "cut_invalid 'x'"),
        ("time soon", "time_invalid 'soon'"),
        ("0.0=99, 1.0=0", "offset_invalid 99"),
        ("7.7=0", "cut_segment_unknown 7.7"),
        ("checkpoint x", "position_needs_group"),
        ('{"test/other": {"0.0": 1}}', "position_lacks_stream"),
    ],
)
def test_a_place_that_is_none_is_refused(lane: Lane, start: str, says: str) -> None:
    with raises(says):
        Group.made(lane, start=start)


def test_a_time_to_come_and_an_end_before_the_start_are_refused(lane: Lane) -> None:
    at: datetime = lane.value("SELECT clock_timestamp()")
    with raises("time_in_future"):
        Group.made(lane, start=f"time {(at + timedelta(hours=1)).isoformat()}")
    lane.append({"0.0": 5})
    with raises("end_before_start 0.0"):
        Group.made(lane, start="0.0=4, 1.0=0", end="0.0=2, 1.0=0")


def test_a_place_below_the_head_is_refused_with_the_count(lane: Lane) -> None:
    lane.append({"0.0": 5})
    lane.truncate("0.0=4, 1.0=0")
    with raises("events_truncated 3 events"):
        Group.made(lane, start="0.0=1, 1.0=0")


# Going back and forth.


def test_a_reset_goes_back_only_when_it_is_said_that_outputs_may_repeat(group: Group) -> None:
    reader = group.reader()
    reader.commit(reader.must_open(budget=10))
    group.checkpoint("one")
    reader.commit(reader.must_open())
    with raises("events_would_repeat"):
        reset(group, "checkpoint one")
    assert group.cut() == {"0.0": 10, "1.0": 10}
    done = reset(group, "checkpoint one", allow_repeat=True)
    assert (done["generation"], group.cut()) == (1, {"0.0": 5, "1.0": 5})
    reset(group, "start", allow_repeat=True)
    assert group.cut() == {"0.0": 0, "1.0": 0}
    reset(group, "tail")
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_a_reader_of_before_a_reset_publishes_nothing(group: Group) -> None:
    reader = group.reader()
    batch = reader.must_open()
    reset(group, "head")
    with raises("batch_abandoned"):
        reader.commit(batch)
    with pytest.raises(Fenced):
        reader.open()
    assert group.states() == {"0.0": ("unassigned", 0, None), "1.0": ("unassigned", 0, None)}
    assert group.reader("another").must_open().batch_id == 2


def test_a_subscriber_that_goes_back_holds_back_what_it_will_read(group: Group) -> None:
    group.reader().read_all()
    group.checkpoint()
    reset(group, "0.0=3, 1.0=0", allow_repeat=True)
    assert group.published() == {"0.0": 3, "1.0": 0}
    retain(group.database)
    assert group.lanes[0].head() == {"0.0": 3, "1.0": 0}
    with raises("events_truncated 3 events"):
        reset(group, "start", allow_repeat=True)


# Configuration.


def test_each_change_makes_a_generation_and_an_old_one_is_refused(group: Group) -> None:
    assert update(group, on_gap="skip")["generation"] == 1
    assert update(group, generation=1, max_outstanding=5)["generation"] == 2
    with raises("group_changed 2 1"):
        update(group, generation=1, on_gap="fail")
    with raises("argument_invalid on_gap 'ignore'"):
        update(group, on_gap="ignore")
    [row] = group.rows("SELECT on_gap, max_outstanding FROM reader_group WHERE group_id = :g")
    assert tuple(row) == ("skip", 5)


def test_a_group_that_becomes_a_subscriber_is_protected_from_where_it_stands(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane, subscriber=False)
    reader = group.reader()
    reader.commit(reader.must_open())
    update(group, subscriber=True)
    assert group.published() == {"0.0": 5, "1.0": 0}
    update(group, subscriber=False)
    assert group.published() is None
    lane.append({"0.0": 5})
    lane.truncate("0.0=7, 1.0=0")
    with pytest.raises(Truncated):
        update(group, subscriber=True)


def test_streams_come_and_go(group: Group) -> None:
    other = Lane.made(group.database)
    other.append({"0.0": 4})
    update(group, streams=[group.lanes[0].name, other.name])
    assert group.cut(other) == {"0.0": 0, "1.0": 0}
    batch = group.reader().must_open()
    with raises("batch_open"):
        update(group, streams=[other.name])
    group.reader().commit(batch)
    update(group, streams=[other.name])
    assert group.states(group.lanes[0]) == {}
    with raises("group_without_streams"):
        update(group, streams=[])


# Forks and ends.


def test_a_fork_stands_where_the_group_does_and_leaves_it_alone(group: Group) -> None:
    reader = group.reader()
    reader.commit(reader.must_open(budget=10))
    group.checkpoint("half")
    reader.commit(reader.must_open())
    assert fork(group).cut() == {"0.0": 10, "1.0": 10}
    half = fork(group, at="checkpoint half", subscriber=True)
    assert half.cut() == half.published() == {"0.0": 5, "1.0": 5}
    assert sorted(half.reader().read_all()) == [("0.0", 5, 10), ("1.0", 5, 10)]
    assert group.cut() == {"0.0": 10, "1.0": 10}
    with raises("checkpoint_not_found 'third'"):
        fork(group, at="checkpoint third")


def test_a_fork_of_a_group_between_two_cuts_stops_where_that_stops(lane: Lane) -> None:
    lane.append({"0.0": 10, "1.0": 10})
    group = Group.made(lane, start="0.0=2, 1.0=2", end="0.0=6, 1.0=3")
    group.reader().read_all()
    again = fork(group, at="0.0=3, 1.0=2")
    assert sorted(again.reader().read_all()) == [("0.0", 3, 6), ("1.0", 2, 3)]
    [[at_end]] = again.rows(
        "SELECT at_end FROM reader_groups JOIN reader_group ON name = reader_group "
        "WHERE group_id = :g"
    )
    assert at_end
    with raises("end_before_start 0.0"):
        fork(group, at="tail")


def test_a_deleted_group_holds_nothing_back_and_can_be_made_again(group: Group, lane: Lane) -> None:
    other = Group.made(lane)
    other.reader().read_all()
    other.checkpoint()
    reader = group.reader()
    reader.commit(reader.must_open(10))
    batch = reader.must_open()
    assert retain(lane.database, [lane.name])[0]["rule"] == "nothing_consumed"
    once, deleted = unique("delete"), group.group_id
    delete_reader_group(group.database, group.name, request_id=once)
    delete_reader_group(group.database, group.name, request_id=once)
    for use in (lambda: reader.commit(batch), reader.open, group.checkpoint):
        with pytest.raises((NotFound, Fenced)):
            use()
    assert retain(lane.database, [lane.name])[0]["events"] == 20
    lane.append({"0.0": 4})
    create_reader_group(lane.database, group.name, [lane.name], request_id=unique("create"))
    delete_reader_group(group.database, group.name, request_id=once)  # which was done before
    again = Group(group.database, group.name, group.lanes)
    assert again.group_id > deleted
    assert again.reader().read_all() == [("0.0", 10, 14)]


def test_a_deleted_group_leaves_no_row_and_of_what_it_did_not_finish_no_file(
    database: Database, tmp_path: Path
) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": [5, 5], "1.0": 10})
    group = Group.made(lane)
    update(group, pins=[Pin.parse(f"{lane.name} 0..0.5 big")])
    reader = group.reader()

    def write(batch: Batch) -> dict[str, Any]:
        folder = f"out/group={group.name}/batch={batch.identity}/attempt={batch.attempt}/"
        one = {"kind": "parquet", "output": "out", "root": str(tmp_path), "path": folder}
        record_output(database, batch, one)
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "part.parquet").write_text("rows")
        return one

    done = reader.must_open(5)
    committed = write(done)
    reader.commit(done, outputs=[committed])
    group.checkpoint()
    group.checkpoint("waits for the open batch")
    for _ in range(3):  # two tries died
        batch = group.reader().must_open(5)
        write(batch)
    other = Group.made(lane)
    other.reader().must_open()
    group_tables = rows(
        database,
        """SELECT table_name FROM information_schema.columns JOIN pg_tables
            ON tablename = table_name AND schemaname = table_schema
        WHERE table_schema = 'weir_internal' AND column_name = 'group_id' ORDER BY 1""",
    )

    def known(one: Group) -> list[str]:
        return [t for (t,) in group_tables if one.rows(f"SELECT 1 FROM {t} WHERE group_id = :g")]

    everywhere = [t for (t,) in group_tables]
    assert known(group) == everywhere, "each has something to delete"
    before = known(other)
    delete_reader_group(database, group.name, request_id="delete")
    assert known(group) == []
    assert known(other) == before
    known = read_installation(database)
    marker = Marker(known.installation_id, known.sweep_count)
    write_marker(str(tmp_path / "warehouse"), marker)
    assert sweep(database, str(tmp_path / "warehouse"), 0.0)["failed"] == []
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [
        tmp_path / committed["path"] / "part.parquet"
    ], "what it committed is somebody's result"
    assert rows(database, "SELECT path FROM garbage") == []


# Readers that are taken out by hand.


def test_a_place_behind_the_head_from_which_nothing_was_truncated_is_as_good_as_the_head(
    lane: Lane,
) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane)
    group.reader().read_all()
    group.checkpoint("at the end of 0.0")
    lane.scale("0.0")
    lane.truncate("1.0=0, 2.1=0, 3.1=0")
    lane.append({"2.1": 3})
    reset(group, "checkpoint at the end of 0.0")
    assert group.reader().read_all() == [("2.1", 0, 3)]


def test_of_a_place_partly_behind_the_head_just_what_was_truncated_is_counted(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    lane.truncate("0.0=4, 1.0=0")
    with raises("events_truncated 3 events"):
        Group.made(lane, start="0.0=1, 1.0=5")


def test_a_checkpoint_that_waited_releases_nothing_of_a_stream_that_was_left_meanwhile(
    group: Group, lane: Lane
) -> None:
    other = Lane.made(lane.database)
    other.append({"0.0": 5})
    update(group, streams=[lane.name, other.name])
    reader = group.reader()
    reader.read_all()
    lane.append({"0.0": 5})
    batch = reader.must_open()
    checkpoint(group.database, group.name, name="waits", barrier=True)
    update(group, streams=[lane.name])
    update(group, streams=[lane.name, other.name], start="head")
    reader.commit(batch)
    assert group.published(lane) == {"0.0": 15, "1.0": 10}
    assert group.published(other) == group.cut(other) == {"0.0": 0, "1.0": 0}


def test_batches_of_a_group_that_is_made_anew_are_others(group: Group, lane: Lane) -> None:
    before = group.reader().must_open()
    delete_reader_group(group.database, group.name, request_id=unique("delete"))
    create_reader_group(group.database, group.name, [lane.name], request_id=unique("create"))
    again = group.reader().must_open()
    assert (before.batch_id, again.batch_id) == (1, 1)
    assert before.identity != again.identity


def offline(group: Group, reader: str, position: str = "") -> None:
    reader_offline(group.database, group.name, reader, position, request_id=unique("offline"))


def test_a_reader_offline_without_a_position_leaves_its_batch_to_others(group: Group) -> None:
    gone, other = group.reader("gone"), group.reader("other")
    batch = gone.must_open()
    offline(group, "gone")
    taken = other.must_open(lease=60.0)
    assert (taken.batch_id, taken.bounds, taken.attempt) == (batch.batch_id, batch.bounds, 2)
    with pytest.raises(Fenced):
        gone.commit(batch)


def test_what_lies_before_the_given_position_counts_as_read(group: Group) -> None:
    gone, other = group.reader("gone"), group.reader("other")
    batch = gone.must_open()
    offline(group, "gone", "0.0=7")
    assert group.states() == {"0.0": ("unassigned", 7, None), "1.0": ("unassigned", 0, None)}
    with pytest.raises(Fenced, match=r"abandoned|taken over"):
        gone.commit(batch)
    assert sorted(other.read_all()) == [("0.0", 7, 10), ("1.0", 0, 10)]


def test_a_reader_offline_goes_on_no_more_though_nobody_has_replaced_it(group: Group) -> None:
    gone = group.reader("gone")
    batch = gone.must_open(budget=1)
    offline(group, "gone")
    for refused in (gone.open, gone.renew, lambda: gone.commit(batch)):
        with pytest.raises(Fenced):
            refused()
    assert group.cut() == {"0.0": 0, "1.0": 0}
    group.reader("gone").read_all()
    assert group.cut() == {"0.0": 10, "1.0": 10}


def test_a_position_in_several_streams_names_them(group: Group, lane: Lane) -> None:
    other = Lane.made(lane.database)
    other.append({"0.0": 5})
    update(group, streams=[lane.name, other.name])
    group.reader("gone").must_open()
    with raises("position_lacks_stream test/stream test"):
        offline(group, "gone", "0.0=3")
    offline(group, "gone", json.dumps({str(other.name): {"0.0": 3}}))
    assert group.cut(lane) == {"0.0": 0, "1.0": 0}
    assert group.cut(other) == {"0.0": 3, "1.0": 0}


def test_a_position_behind_something_unread_is_refused(group: Group, lane: Lane) -> None:
    lane.scale("0.0", parts=2)
    lane.append({"2.1": 5, "3.1": 5})
    reader = group.reader("gone")
    batch = reader.must_open()
    with raises("position_skips_segment 2.1 0.0"):
        offline(group, "gone", "2.1=3")
    reader.commit(batch)
    lane.append({"2.1": 5})
    lane.scale("2.1", parts=2)
    lane.append({"4.2": 5})
    reader.must_open()
    offline(group, "gone", "2.1=10, 4.2=2")
    assert group.cut() == {"1.0": 10, "3.1": 5, "4.2": 2, "5.2": 0}


@pytest.mark.parametrize("position", ["0.0=11", "7.7=0", "0.0=future"])
def test_a_position_outside_the_batch_is_refused(group: Group, position: str) -> None:
    reader = group.reader("task")
    batch = reader.must_open()
    with raises("position_outside_batch"):
        offline(group, "task", position)
    reader.commit(batch)
    with raises("reader_has_no_batch"):
        offline(group, "task", "0.0=10")
    with raises("reader_not_found 'nobody'"):
        offline(group, "nobody")
