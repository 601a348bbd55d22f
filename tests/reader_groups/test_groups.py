"""Reader groups: how they are created, forked and deleted."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from tests.raises import raises
from tests.world.adjunct import Store
from tests.world.garbage import sweep
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run, unique
from weir.controller.ownership import read_installation
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.errors import Fenced, NotFound
from weir.model.names import stream_name
from weir.reader_groups.batch import Batch
from weir.reader_groups.groups.lifecycle import (
    create_reader_group,
    delete_in,
    delete_reader_group,
    end_of_group,
    fork_reader_group,
)
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.history import record_groups
from weir.reader_groups.outputs.records import record_output
from weir.retention.run import retain
from weir.warehouse.marker import Marker, write_marker


def fork(group: Group, **options: Any) -> Group:
    name = unique("fork")
    fork_reader_group(group.database, group.name, name, request_id=unique("request"), **options)
    return Group(group.database, name, group.lanes)


def test_group_that_begins_at_a_head_with_a_future_segment_waits_for_the_unread_one(
    lane: Lane,
) -> None:
    lane.append({"0.0": 5, "1.0": 3})
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 2})
    lane.truncate(f"1.0=1, {merged}=future")
    group = Group.made(lane)
    assert group.states() == {
        "1.0": ("unassigned", 1, None),
        merged: ("future", None, None),
    }
    assert group.reader().read_all() == [("1.0", 1, 3), (merged, 0, 2)]


def test_the_same_request_returns_the_same_and_another_is_a_conflict(lane: Lane) -> None:
    name, request = unique("group"), unique("request")
    made = create_reader_group(lane.database, name, [lane.name], request_id=request)
    lane.append({"0.0": 1})
    assert made == create_reader_group(lane.database, name, [lane.name], request_id=request)
    with raises("request_reused"):
        create_reader_group(lane.database, name, [lane.name], start="tail", request_id=request)
    with raises(f"group_exists {name}"):
        create_reader_group(lane.database, name, [lane.name], request_id=unique("request"))


def test_a_stream_named_twice_is_read_once(lane: Lane) -> None:
    name = unique("group")
    create_reader_group(lane.database, name, [lane.name, lane.name], request_id=unique("r"))
    assert Group(lane.database, name, (lane,)).cut() == {"0.0": 0, "1.0": 0}


@pytest.mark.parametrize("name", ["", "Upper", "a b", "../x", "a'b", "x" * 64, "-a", "a\n"])
def test_bad_names_are_refused(lane: Lane, name: str) -> None:
    with raises("name_invalid group"):
        create_reader_group(lane.database, name, [lane.name], request_id=unique("request"))


def test_what_is_wrong_with_the_arguments_is_said(shared_database: Database, lane: Lane) -> None:
    def create(**options: object) -> None:
        given = {"streams": [lane.name], "request_id": unique("request"), **options}
        create_reader_group(shared_database, unique("group"), **given)  # type: ignore[arg-type]

    with raises("position_invalid 'middle'"):
        create(start="middle")
    with raises("argument_invalid on_gap 'panic'"):
        create(on_gap="panic")
    with raises("group_unsuitable read"):
        create(streams=[])
    with raises("stream_not_found no/such"):
        create(streams=[lane.name, stream_name("no/such")])


def test_an_unknown_group_is_named(shared_database: Database, lane: Lane) -> None:
    group = Group(shared_database, "no-such-group", (lane,))
    with raises("group_not_found no-such-group"):
        group.reader()
    with raises("group_not_found no-such-group"):
        group.checkpoint("x")


def test_a_group_that_has_read_all_it_will_ever_have_says_so(lane: Lane) -> None:
    lane.append({"0.0": 5})
    bounded, endless = Group.made(lane, end="tail"), Group.made(lane)

    def said(group: Group) -> str:
        return group.database.transaction(lambda c: end_of_group(c, group.name))

    for group in (bounded, endless):
        assert said(group) == ""
        group.reader().read_all()
    end = f"is at its end: it has read {lane.name}, and nothing will follow."
    assert (said(bounded), said(endless)) == (f"reader group {bounded.name} {end}", "")
    lane.append({"1.0": 1})
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    assert said(endless) == ""
    endless.reader().read_all()
    assert said(endless) == f"reader group {endless.name} {end}"
    assert said(bounded) == f"reader group {bounded.name} {end}"


def test_a_fork_of_a_group_between_two_cuts_stops_where_that_stops(lane: Lane) -> None:
    lane.append({"0.0": 10, "1.0": 10})
    group = Group.made(lane, start="0.0=2, 1.0=2", end="0.0=6, 1.0=3")
    assert sorted(group.reader().read_all()) == [("0.0", 2, 6), ("1.0", 2, 3)]
    lane.append({"0.0": 3})
    assert group.reader().read_all() == []
    again = fork(group, at="0.0=3, 1.0=2")
    assert sorted(again.reader().read_all()) == [("0.0", 3, 6), ("1.0", 2, 3)]
    [[at_end]] = again.rows(
        "SELECT at_end FROM reader_groups JOIN reader_group ON name = reader_group "
        "WHERE group_id = :g"
    )
    assert at_end
    with raises("position_invalid 0.0 later"):
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
    lane = Lane.made(database, retention="consumed")
    lane.append({"0.0": [5, 5], "1.0": 10})
    group = Group.made(lane)
    group.update(pins=[Pin.parse(f"{lane.name} 0..0.5 big")])
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
    record_groups(database, [group.name])
    group_tables = rows(
        database,
        """SELECT table_name FROM information_schema.columns JOIN pg_tables
            ON tablename = table_name AND schemaname = table_schema
        WHERE table_schema = 'weir_internal' AND column_name = 'group_id'
          AND table_name <> 'adjunct_store'  -- its group is deleted with it
          AND table_name <> 'counter_example'  -- until the next audit
        ORDER BY 1""",
    )
    run(
        database,
        """INSERT INTO adjunct_pin (group_id, batch_id, store_id, cut, clock)
        VALUES (:g, :b, :a, '{}', 1)""",
        g=group.group_id, b=done.batch_id, a=Store.made(lane).row.store_id,
    )  # fmt: skip

    def known(one: Group) -> list[str]:
        return [t for (t,) in group_tables if one.rows(f"SELECT 1 FROM {t} WHERE group_id = :g")]

    everywhere = [t for (t,) in group_tables]
    assert known(group) == everywhere, "each has something to delete"
    before = known(other)
    delete_reader_group(database, group.name, request_id="delete")
    # What it was given is known as long as its stream is.
    assert known(group) == ["delivered_range", "placement"]
    assert known(other) == before
    installation = read_installation(database)
    marker = Marker(installation.installation_id, installation.sweep_count)
    write_marker(str(tmp_path / "warehouse"), marker)
    assert sweep(database, str(tmp_path / "warehouse"), 0.0)["failed"] == []
    assert [p for p in (tmp_path / "out").rglob("*") if p.is_file()] == [
        tmp_path / committed["path"] / "part.parquet"
    ], "what it committed is somebody's result"
    assert rows(database, "SELECT path FROM garbage") == []


def test_what_is_recorded_of_groups_leaves_out_one_that_is_being_deleted(
    group: Group, lane: Lane
) -> None:
    other = Group.made(lane)

    def delete(connection: Connection) -> None:
        delete_in(connection, group.group_id)
        record_groups(group.database, [group.name, other.name])

    group.database.transaction(delete)
    assert {one.group_id for one in rows(group.database, "SELECT group_id FROM group_history")} == {
        other.group_id
    }


def test_batches_of_a_group_that_is_made_anew_are_others(group: Group, lane: Lane) -> None:
    before = group.reader().must_open()
    delete_reader_group(group.database, group.name, request_id=unique("delete"))
    create_reader_group(group.database, group.name, [lane.name], request_id=unique("create"))
    again = group.reader().must_open()
    assert (before.batch_id, again.batch_id) == (1, 1)
    assert before.identity != again.identity
