"""Each operation on a reader group is killed at every moment, and asked for again: done once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.fault_points import Scene, kill_everywhere
from tests.world.groups import LEASE, Group, open_batch
from tests.world.groups import budget as events
from tests.world.streams import Lane, database_of_file, run, staged, unique
from weir.database.connection import Database
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint
from weir.reader_groups.checkpoints.periodic import checkpoint_all, prune_checkpoints, settle_all
from weir.reader_groups.groups.lifecycle import (
    create_reader_group,
    delete_reader_group,
    fork_reader_group,
)
from weir.reader_groups.groups.readers import expire, join, leave, reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group
from weir.reader_groups.outputs.records import record_output

database = database_of_file


def scene(group: Group, operation: Callable[[Database], Any], *more: str, out: Any = ()) -> Scene:
    return Scene([lane.name for lane in out], operation, [group.name, *more], group.lanes)


def made(database: Database, **options: Any) -> Group:
    """A group with ten events to read in each of two segments."""
    lane = Lane.made(database, retention="consumed")
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    return Group.made(lane, **options)


def create(database: Database) -> Scene:
    group, name = made(database), unique("group")
    streams = [lane.name for lane in group.lanes]
    return scene(
        group, lambda db: create_reader_group(db, name, streams, request_id="create"), name
    )


def join_first(database: Database) -> Scene:
    group = made(database)
    return scene(group, lambda db: join(db, group.name, "reader", LEASE))


def leave_with_a_batch(database: Database) -> Scene:
    group = made(database)
    reader = group.reader()
    reader.must_open(budget=1)
    return scene(group, lambda db: leave(db, group.name, "reader", reader.token, 0.0))


def expire_two(database: Database) -> Scene:
    run(database, "UPDATE reader SET lease_until = 'infinity'")
    one, other = made(database), made(database)
    for group in (one, other):
        group.reader().read_all()
        group.lapse("reader")
    return Scene(
        [], lambda db: expire(db, 0.0) and None, [one.name, other.name], one.lanes + other.lanes
    )


def opening(group: Group, name: str, token: int) -> Callable[[Database], Any]:
    return lambda db: open_batch(db, group.name, name, token, lease=0.0, budget=events(10))


def open_new(database: Database) -> Scene:
    group = made(database)
    group.lanes[0].scale("1.0")
    return scene(group, opening(group, "reader", group.reader().token))


def open_over_a_gap(database: Database) -> Scene:
    group = made(database, on_gap="skip")
    group.lanes[0].truncate("0.0=7, 1.0=0")
    return scene(group, opening(group, "reader", group.reader().token))


def open_past_ends(database: Database) -> Scene:
    """What was read to its end gives way to its successors, which have nothing yet."""
    group = made(database)
    reader = group.reader()
    reader.read_all()
    group.lanes[0].scale("1.0")
    return scene(group, opening(group, "reader", reader.token))


def take_over(database: Database) -> Scene:
    group = made(database)
    group.reader("dead").must_open()
    group.lapse("dead")
    return scene(group, opening(group, "heir", group.reader("heir").token))


def commit(database: Database) -> Scene:
    """With an append and a folder as outputs, over a split, after a take-over."""
    group, out = made(database), Lane.made(database, retention="consumed")
    group.lanes[0].scale("1.0")
    group.reader("dead").must_open()
    group.lapse("dead")
    batch = group.reader("heir").must_open()
    path = f"x/group={group.name}/batch=1/attempt={batch.attempt}/"
    outputs = [{"kind": "parquet", "root": "/output", "path": path, "output": "x"}]
    written = staged(out.opened("1"), {"0.0": 3})
    return scene(
        group,
        lambda db: commit_batch(db, batch, lease=LEASE, staged=[written], outputs=outputs),
        out=[out],
    )


def record(database: Database) -> Scene:
    group = made(database)
    batch = group.reader().must_open()
    output = {"kind": "parquet", "root": "/output", "path": f"{group.name}/", "output": "x"}
    return scene(group, lambda db: record_output(db, batch, output))


def split(database: Database) -> Scene:
    """With a folder that is garbage then, and a checkpoint that waits for it."""
    group = made(database)
    batch = group.reader().must_open()
    output = {"kind": "parquet", "root": "/output", "path": f"{group.name}/", "output": "x"}
    record_output(database, batch, output)
    checkpoint(database, group.name, name="waits", barrier=True)
    return scene(group, lambda db: split_batch(db, batch, "it failed"))


def commit_a_half(database: Database) -> Scene:
    """The other half is open afterwards."""
    group = made(database)
    reader = group.reader()
    split_batch(database, reader.must_open(), "it failed")
    batch = reader.must_open()
    return scene(group, lambda db: commit_batch(db, batch, lease=LEASE))


def commit_what_a_checkpoint_waits_for(database: Database) -> Scene:
    group = made(database)
    batch = group.reader().must_open(budget=10)
    checkpoint(database, group.name, name="waits", barrier=True)
    return scene(group, lambda db: commit_batch(db, batch, lease=LEASE))


def checkpoint_now(database: Database) -> Scene:
    group = made(database)
    group.reader().read_all(budget=10)
    return scene(group, lambda db: checkpoint(db, group.name, name="now", request_id=group.name))


def checkpoint_of_itself(database: Database) -> Scene:
    group = made(database)
    group.reader().read_all(budget=10)
    return scene(group, lambda db: checkpoint(db, group.name) and None)


def checkpoints_of_all(database: Database) -> Scene:
    """Of two groups, in one transaction."""
    run(database, "UPDATE reader_group SET checkpointed_at = 'infinity'")
    one, other = made(database), made(database)
    for group in (one, other):
        group.reader().read_all(budget=10)
    return Scene(
        [], lambda db: checkpoint_all(db) and None, [one.name, other.name], one.lanes + other.lanes
    )


def barrier(database: Database) -> Scene:
    group = made(database)
    group.reader().must_open(budget=10)
    return scene(
        group,
        lambda db: checkpoint(db, group.name, name="b", barrier=True, request_id=group.name),
    )


def cancel(database: Database) -> Scene:
    group = made(database)
    group.reader().must_open()
    checkpoint(database, group.name, name="b", barrier=True)
    return scene(group, lambda db: cancel_checkpoint(db, group.name, "b", request_id=group.name))


def settle(database: Database) -> Scene:
    run(database, "UPDATE checkpoint SET state = 'complete', expires_at = NULL, "
                  "ended_at = created_at WHERE state = 'waiting'")  # fmt: skip
    group = made(database)
    group.reader().must_open()
    checkpoint(database, group.name, name="b", barrier=True, patience=0.0)
    return scene(group, lambda db: settle_all(db) and None)


def prune(database: Database) -> Scene:
    group = made(database)
    reader = group.reader()
    for _ in range(2):
        reader.commit(reader.must_open(budget=1))
        group.checkpoint()
    return scene(group, lambda db: prune_checkpoints(db, 0.0) and None)


def update(database: Database) -> Scene:
    group, other = made(database, subscriber=False), Lane.made(database, retention="consumed")
    group.lanes = (*group.lanes, other)
    streams = [lane.name for lane in group.lanes]
    return scene(
        group,
        lambda db: update_reader_group(
            db, group.name, streams=streams, subscriber=True, on_gap="skip", request_id=group.name
        ),
    )


def reset(database: Database) -> Scene:
    group = made(database)
    reader = group.reader()
    reader.commit(reader.must_open(budget=1))
    reader.must_open()
    return scene(
        group,
        lambda db: reset_reader_group(
            db, group.name, "start", allow_repeat=True, request_id=group.name
        ),
    )


def fork(database: Database) -> Scene:
    group, name = made(database), unique("fork")
    group.reader().must_open()
    return scene(group, lambda db: fork_reader_group(db, group.name, name, request_id=name), name)


def delete(database: Database) -> Scene:
    group = made(database)
    group.reader().must_open()
    group.checkpoint("kept")
    return scene(group, lambda db: delete_reader_group(db, group.name, request_id=group.name))


def offline(database: Database) -> Scene:
    group = made(database)
    group.reader().must_open()
    return scene(group, lambda db: reader_offline(db, group.name, "reader", request_id=group.name))


def offline_at_a_position(database: Database) -> Scene:
    group = made(database)
    group.reader().must_open()
    return scene(
        group,
        lambda db: reader_offline(db, group.name, "reader", "0.0=7", request_id=group.name),
    )


SCENES: list[Callable[[Database], Scene]] = [
    create,
    join_first,
    leave_with_a_batch,
    expire_two,
    open_new,
    open_over_a_gap,
    open_past_ends,
    take_over,
    commit,
    record,
    split,
    commit_a_half,
    commit_what_a_checkpoint_waits_for,
    checkpoint_now,
    checkpoint_of_itself,
    checkpoints_of_all,
    barrier,
    cancel,
    settle,
    prune,
    update,
    reset,
    fork,
    delete,
    offline,
    offline_at_a_position,
]
AGAIN_IS_MORE = (join_first, open_new, open_over_a_gap, take_over)


@pytest.mark.random
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_killed_anywhere_and_asked_for_again_it_is_done_once(
    scene: Callable[[Database], Scene], database: Database, tmp_path: Path
) -> None:
    kill_everywhere(
        database, tmp_path, lambda: scene(database), again_is_more=scene in AGAIN_IS_MORE
    )
