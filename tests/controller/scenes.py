"""Pairs of operations that are done at the same moment, and what must be there before."""

from datetime import UTC, datetime
from functools import partial
from typing import Any

from tests.controller.interleave import Scene
from tests.controller.operations import (
    WRITTEN,
    aborting,
    beginning,
    committing,
    creating,
    deleting,
    retaining,
    retaining_what_is_due,
    scaling,
    sealing,
    truncating,
    updating,
)
from tests.world.groups import Group, budget, open_batch
from tests.world.questions import closed_cut_at
from tests.world.streams import FIELDS, Lane, run, unique
from weir.controller.expiry import expire
from weir.controller.transactions import ping_all
from weir.database.connection import Database
from weir.kernel.attempt import Attempt
from weir.model.column_changes import ColumnChanges
from weir.model.names import stream_name
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import (
    create_reader_group,
    delete_reader_group,
    fork_reader_group,
)
from weir.reader_groups.groups.reset import reset_reader_group


def two_commits(lane: Lane) -> Scene:
    one, other = lane.opened("one"), lane.opened("other")
    return Scene([lane.name], committing(one), committing(other, written={"0.0": 4}))


def commits_of_two_streams_named_in_opposite_order(lane: Lane) -> Scene:
    beside = Lane.made(lane.database, retention="consumed")
    one = [lane.opened("one"), beside.opened("one")]
    other = [beside.opened("other"), lane.opened("other")]
    return Scene([lane.name, beside.name], committing(*one), committing(*other))


def commit_of_two_streams_and_renewal_in_opposite_order(lane: Lane) -> Scene:
    beside = Lane.made(lane.database, retention="consumed")
    both = [lane.opened("one"), beside.opened("one")]

    def renewing(database: Database) -> None:
        database.transaction(lambda c: ping_all(c, both[::-1], 60.0, 60.0))

    return Scene([lane.name, beside.name], committing(*both), renewing)


def commit_and_closing_of_the_present(lane: Lane) -> Scene:
    return Scene(
        [lane.name],
        committing(lane.opened("one")),
        lambda database: closed_cut_at(database, lane.name, datetime.now(UTC)),
    )


def commit_and_scale(lane: Lane) -> Scene:
    return Scene([lane.name], committing(lane.opened("one")), scaling(lane, "0.0"))


def two_scales(lane: Lane) -> Scene:
    return Scene([lane.name], scaling(lane, "0.0"), scaling(lane, "1.0", parts=3))


def two_scales_of_one_segment(lane: Lane) -> Scene:
    return Scene([lane.name], scaling(lane, "0.0"), scaling(lane, "0.0", "1.0", parts=1))


def truncation_at_what_a_commit_appends(lane: Lane) -> Scene:
    cut = truncating(lane, "0.0=2, 1.0=1")
    return Scene([lane.name], cut, committing(lane.opened("one")))


def two_truncations(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    further = truncating(lane, "0.0=4, 1.0=0")
    return Scene([lane.name], truncating(lane, "0.0=2, 1.0=0"), further)


def truncation_and_scale(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    return Scene([lane.name], truncating(lane, "0.0=5, 1.0=1"), scaling(lane, "0.0"))


def seal_and_commit(lane: Lane) -> Scene:
    return Scene([lane.name], sealing(lane), committing(lane.opened("one")))


def seal_and_late_commit(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    return Scene([lane.name], sealing(lane), committing(late))


def seal_and_scale(lane: Lane) -> Scene:
    return Scene([lane.name], sealing(lane), scaling(lane, "0.0"))


def delete_and_commit_of_what_the_seal_aborted(lane: Lane) -> Scene:
    attempt = lane.opened("one")
    sealing(lane)(lane.database)
    return Scene([lane.name], deleting(lane), committing(attempt))


def delete_and_commit_again(lane: Lane) -> Scene:
    attempt = lane.opened("one")
    committing(attempt)(lane.database)
    sealing(lane)(lane.database)
    return Scene([lane.name], deleting(lane), committing(attempt))


def delete_and_seal(lane: Lane) -> Scene:
    return Scene([lane.name], deleting(lane), sealing(lane))


def delete_and_create_of_the_same_name(lane: Lane) -> Scene:
    sealing(lane)(lane.database)
    return Scene([lane.name], deleting(lane), creating(str(lane.name), unique("create")))


def two_creates_of_one_name(lane: Lane) -> Scene:
    name = f"test/{unique('stream')}"
    return Scene([stream_name(name)], creating(name, "one"), creating(name, "other"))


def one_create_asked_for_twice(lane: Lane) -> Scene:
    name = f"test/{unique('stream')}"
    return Scene([stream_name(name)], creating(name, "same"), creating(name, "same"))


def update_and_commit(lane: Lane) -> Scene:
    return Scene([lane.name], updating(lane, min_segments=3), committing(lane.opened("one")))


def rename_and_commit(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    renamed = ColumnChanges(add=FIELDS, rename={"key": "name"})
    return Scene([lane.name], updating(lane, columns=renamed), committing(lane.opened("one")))


def default_and_commit(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    more = ColumnChanges(add=[{**FIELDS[0], "name": "gate", "default": "7"}])
    return Scene([lane.name], updating(lane, columns=more), committing(lane.opened("one")))


def new_column_and_commit(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    more = ColumnChanges(add=[{**FIELDS[0], "name": "gate"}])
    return Scene([lane.name], updating(lane, columns=more), committing(lane.opened("one")))


def two_renames_of_one_column(lane: Lane) -> Scene:
    lane.append(WRITTEN, batch="before")
    one, other = (updating(lane, columns=ColumnChanges(rename={"key": to})) for to in "ab")
    return Scene([lane.name], one, other)


def update_and_scale(lane: Lane) -> Scene:
    return Scene([lane.name], updating(lane, min_segments=3), scaling(lane, "0.0"))


def begin_and_scale(lane: Lane) -> Scene:
    return Scene([lane.name], beginning(lane, "one"), scaling(lane, "0.0"))


def take_over_and_commit(lane: Lane) -> Scene:
    return Scene([lane.name], beginning(lane, "one"), committing(lane.opened("one")))


def take_over_and_late_commit(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    return Scene([lane.name], beginning(lane, "late"), committing(late))


def abort_and_commit(lane: Lane) -> Scene:
    attempt = lane.opened("one")
    return Scene([lane.name], aborting(attempt), committing(attempt))


def late_commit_and_scale(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    return Scene([lane.name], committing(late), scaling(lane, "2.1"))


def late_commit_and_commit(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    return Scene(
        [lane.name], committing(late), committing(lane.opened("one"), written={"2.1": 3, "1.0": 1})
    )


def late_commits_of_two_epochs(lane: Lane) -> Scene:
    late = lane.opened("late")
    lane.scale("0.0")
    later = lane.opened("later")
    lane.scale("2.1")
    return Scene([lane.name], committing(late), committing(later, written={"2.1": 3}))


def expiry_and_delete(lane: Lane) -> Scene:
    lane.opened("one", lease=0.0)
    seal, delete = sealing(lane), deleting(lane)
    return Scene(
        [lane.name],
        lambda database: len(expire(database, 0.0)),
        lambda database: (seal(database), delete(database)),
    )


def delete_and_batch(lane: Lane) -> Scene:
    other = Lane.made(lane.database, retention="consumed")
    for one in (lane, other):
        one.append({"0.0": 3}, batch="before")
    group = Group.made(lane, other, subscriber=False)
    token = group.reader().token
    sealing(lane)(lane.database)

    def opening(database: Database) -> Any:
        batch = open_batch(database, group.name, "reader", token, lease=60.0, budget=budget())
        return None if batch is None else batch.events

    return Scene([lane.name, other.name], deleting(lane), opening)


def consumed(lane: Lane) -> Group:
    """Return a subscriber that has read and released everything: three events."""
    group = Group.made(lane)
    lane.append({"0.0": [1, 2]}, batch="before")
    group.checkpoint("begun")
    group.reader().read_all()
    group.checkpoint("read")
    return group


def two_runs_of_retention(lane: Lane) -> Scene:
    consumed(lane)
    return Scene([lane.name], retaining(lane), retaining(lane))


def alone_due(lane: Lane) -> None:
    """Let retention be due of no other stream of this database."""
    run(lane.database, "DELETE FROM retention_queue WHERE stream_id <> :s", s=lane.stream_id)


def two_runs_of_retention_where_it_is_due(lane: Lane) -> Scene:
    consumed(lane)
    alone_due(lane)
    return Scene([lane.name], retaining_what_is_due, retaining_what_is_due)


def two_runs_of_retention_where_it_is_due_and_nothing_is_consumed(lane: Lane) -> Scene:
    Group.made(lane)
    lane.append(WRITTEN, batch="before")
    alone_due(lane)
    return Scene([lane.name], retaining_what_is_due, retaining_what_is_due)


def retention_and_a_new_subscriber_at_the_head(lane: Lane) -> Scene:
    consumed(lane)
    name = unique("new")
    create = partial(create_reader_group, name=name, streams=[lane.name], request_id=name)
    return Scene([lane.name], retaining(lane), lambda database: bool(create(database)))


def retention_and_a_new_subscriber_of_what_is_consumed(lane: Lane) -> Scene:
    consumed(lane)
    name, start = unique("new"), "0.0=1, 1.0=0"
    create = partial(
        create_reader_group, name=name, streams=[lane.name], start=start, request_id=name
    )
    return Scene([lane.name], retaining(lane), lambda database: bool(create(database)))


def retention_and_a_fork_to_replay(lane: Lane) -> Scene:
    group, name = consumed(lane), unique("fork")
    fork = partial(
        fork_reader_group, name=group.name, new_name=name, at="checkpoint begun", subscriber=True,
        request_id=name,
    )  # fmt: skip
    return Scene([lane.name], retaining(lane), lambda database: bool(fork(database)))


def retention_and_a_reset_to_replay(lane: Lane) -> Scene:
    group, request = consumed(lane), unique("reset")
    reset = partial(
        reset_reader_group, name=group.name, to="start", allow_repeat=True, request_id=request
    )
    return Scene([lane.name], retaining(lane), lambda database: bool(reset(database)))


def retention_and_a_release(lane: Lane) -> Scene:
    group = Group.made(lane)
    lane.append({"0.0": [1, 2]}, batch="before")
    group.reader().read_all()
    release = partial(checkpoint, group=group.name, name="noon", request_id=unique("noon"))
    return Scene([lane.name], retaining(lane), lambda database: bool(release(database)))


def retention_and_the_end_of_a_subscriber(lane: Lane) -> Scene:
    consumed(lane)
    slow, request = Group.made(lane, start="head"), unique("delete")
    delete = partial(delete_reader_group, name=slow.name, request_id=request)
    return Scene([lane.name], retaining(lane), lambda database: bool(delete(database)))


def retention_and_commit(lane: Lane) -> Scene:
    consumed(lane)
    return Scene([lane.name], retaining(lane), committing(lane.opened("one")))


def late_attempts(lane: Lane) -> tuple[Attempt, Attempt]:
    """Begin two appends, and split their segment with events before and after the split. Return the
    appends."""
    lane.append({"0.0": 1}, batch="before")
    late, other = lane.opened("late"), lane.opened("other")
    lane.scale("0.0")
    lane.append({"2.1": 1}, batch="between")
    return late, other
