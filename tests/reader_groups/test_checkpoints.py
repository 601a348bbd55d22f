"""Checkpoints: where a group stands, under a name, and what that releases to retention."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from spark_jobs import checkpoints
from spark_jobs.checkpoints import Checkpoints
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.watching import count_statements
from tests.world.groups import Group
from tests.world.streams import Lane, rows, unique, while_held
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.reader_groups.checkpoints.periodic import checkpoint_all
from weir.reader_groups.groups.lag import read_lag
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.locks import lock_group
from weir.settings import Settings
from weir.warehouse.marker import MARKER


def recorded(group: Group) -> dict[str, dict[str, Any]]:
    found = group.rows("SELECT name, cuts FROM checkpoint WHERE group_id = :g ORDER BY created_at")
    return {row.name: row.cuts for row in found}


def test_what_was_reset_and_read_again_is_released_again(group: Group) -> None:
    """Though the group stands where its last checkpoint was."""
    group.reader().read_all()
    group.checkpoint()
    released = group.released()
    reset_reader_group(
        group.database, group.name, "start", allow_repeat=True, request_id=unique("reset")
    )
    assert group.released() == {"0.0": 0, "1.0": 0}
    group.reader().read_all()
    assert group.checkpoint() is not None
    assert group.released() == released
    assert group.checkpoint() is None


def test_a_name_is_used_once(group: Group) -> None:
    group.checkpoint("one")
    with raises("checkpoint_exists 'one'"):
        group.checkpoint("one")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\nb", "a\x00b"])
def test_bad_names_are_refused(group: Group, name: str) -> None:
    with raises("name_invalid checkpoint"):
        group.checkpoint(name)


def test_all_groups_that_moved_are_checkpointed(database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 5})
    moved, still = Group.made(lane), Group.made(lane)
    moved.reader().read_all()
    made, failed = checkpoint_all(database)
    assert [one["reader_group"] for one in made] == [moved.name]
    assert failed == []
    assert (recorded(still), len(recorded(moved))) == ({}, 1)
    assert checkpoint_all(database) == ([], [])


def test_many_groups_are_checkpointed_with_as_many_statements_as_a_few(
    test_database: TestDatabase,
) -> None:
    def statements(groups: int) -> int:
        database = test_database.open()
        for _ in range(groups):
            lane = Lane.made(database)
            lane.append({"0.0": 5})
            Group.made(lane).reader().read_all()
        counted = count_statements(database)
        made, failed = checkpoint_all(database)
        assert (len(made), failed) == (groups, [])
        return len(counted)

    assert statements(30) == statements(2)


def test_a_group_that_is_locked_keeps_neither_the_others_nor_its_streams_waiting(
    database: Database,
) -> None:
    lanes = [Lane.made(database) for _ in range(3)]
    groups = [Group.made(lane) for lane in lanes]
    for lane, group in zip(lanes, groups, strict=True):
        lane.append({"0.0": 5})
        group.reader().read_all()

    def others(_: Connection) -> None:
        assert [len(recorded(group)) for group in groups] == [1, 0, 1]
        for lane in lanes:
            rows(database, "SELECT FROM stream WHERE stream_id = :s FOR NO KEY UPDATE NOWAIT",
                 s=lane.stream_id)  # fmt: skip

    held, (made, failed) = while_held(
        database,
        lambda c: lock_group(c, groups[1].name),
        partial(checkpoint_all, database),
        others,
    )
    assert (held, failed) == (None, [])
    assert {one["reader_group"] for one in made} == {group.name for group in groups}
    assert [len(recorded(group)) for group in groups] == [1, 1, 1]


def test_a_group_that_cannot_be_checkpointed_does_not_stop_those_in_its_transaction(
    test_database: TestDatabase, database: Database
) -> None:
    groups = [Group.made(Lane.made(database)) for _ in range(3)]
    for group in groups:
        group.lanes[0].append({"0.0": 5})
        group.reader().read_all()
    execute(
        test_database.owner_dsn,
        f"""CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            IF NEW.group_id = {groups[1].group_id} THEN
                RAISE EXCEPTION 'not this one';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER refuse BEFORE INSERT ON checkpoint
        FOR EACH ROW EXECUTE FUNCTION public.refuse()""",
    )
    made, [failed] = checkpoint_all(database)
    assert [one["reader_group"] for one in made] == [groups[0].name, groups[2].name]
    assert failed.startswith(f"group {groups[1].name}: not this one")


def test_the_periodic_job_measures_only_groups_that_moved(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 5})
    moved = Group.made(lane)
    Group.made(lane)
    Path(settings.warehouse, MARKER).write_text(read_installation(database).installation_id)
    job = Job("checkpoints", RunId("dag", "run", "task"), settings, database)
    checkpoints.run(job, Checkpoints())
    moved.reader().read_all()
    [lag] = checkpoints.run(job, Checkpoints())["lag"]
    assert lag["reader_group"] == moved.name
    assert checkpoints.run(job, Checkpoints())["lag"] == []


def lag(group: Group, lane: Lane) -> Mapping[str, object]:
    one: dict[str, Any] = read_lag(group.database, [group.name])[0]._asdict()
    assert one.pop("stream") == str(lane.name)
    del one["reader_group"]
    assert (one.pop("waiting") > 0) == (one["unread_events"] > 0)
    return one


def test_lag_is_what_is_unread_in_events_bytes_and_time(lane: Lane) -> None:
    group = Group.made(lane)
    caught_up = {"unread_events": 0, "unread_bytes": 0, "lost_events": 0, "seconds": 0}
    assert lag(group, lane) == caught_up
    first = lane.append({"0.0": 5})
    last = lane.append({"1.0": 5})
    assert lag(group, lane) == {
        "unread_events": 10,
        "unread_bytes": 100,
        "lost_events": 0,
        "seconds": pytest.approx((last.clock - first.clock) / 1e6),
    }
    group.reader().read_all()
    assert lag(group, lane) == caught_up


def test_lag_sees_what_is_unread_only_in_successors(lane: Lane, group: Group) -> None:
    group.reader().read_all()
    low, high = lane.scale("0.0")
    middle = lane.scale(low)
    first = lane.append({middle[0]: 2})
    last = lane.append({high: 3})
    found = lag(group, lane)
    assert (found["unread_events"], found["lost_events"]) == (5, 0)
    assert found["seconds"] == pytest.approx((last.clock - first.clock) / 1e6)


def test_lag_of_a_group_ahead_of_the_head_here_and_behind_it_there(lane: Lane) -> None:
    lane.append({"0.0": 10, "1.0": 10})
    group = Group.made(lane, subscriber=False)
    a, b = group.reader("a"), group.reader("b")
    first, _ = a.must_open(), b.must_open()
    a.commit(first)
    assert group.cut() == {"0.0": 10, "1.0": 0}
    lane.truncate("0.0=0, 1.0=4")
    found = lag(group, lane)
    assert (found["lost_events"], found["unread_events"], found["unread_bytes"]) == (4, 6, 60)


def test_what_lies_below_the_head_is_lost_and_not_unread(lane: Lane, group: Group) -> None:
    low, high = lane.scale("0.0")
    lane.append({low: 2, high: 3})
    lane.truncate(f"{low}=1, {high}=0, 1.0=4")
    found = lag(group, lane)
    assert (found["lost_events"], found["unread_events"]) == (15, 10)
