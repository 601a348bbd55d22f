"""The scenarios of checkpoints: what they say, for whom they wait. The answer as data."""

from typing import Any

import pytest

from tests.conformance.cases import BY_A_GROUP, CASES, Answers, listed
from tests.conformance.groups import (
    OFFSETS_MOVE,
    Different,
    acquired,
    barrier,
    cut_of,
    expected,
    grouped,
    position,
    read_to,
)
from tests.conformance.world import theirs
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, database_of_file, unique
from weir.database.connection import Database
from weir.errors import Conflict
from weir.model.key_space import KeyRange
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint
from weir.reader_groups.checkpoints.periodic import prune_checkpoints
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group

case = ANSWERS = Answers()

DIFFERENT: Different = {
    "CP-01": {"last_checkpoint_positions": ({"0": 0}, OFFSETS_MOVE)},
    "CP-07": {1: (True, "one transaction: it is released when it is complete")},
    "CP-09": {4: (None, OFFSETS_MOVE + ": one commit answers all that wait for it")},
    "CP-11": {0: ([1, 2], OFFSETS_MOVE + ": a checkpoint stops nobody")},
    "CP-17": {2: ("event 3", OFFSETS_MOVE + "; the literal rule by name is asserted beside it")},
    "CP-19": {0: ("events from new segments", "a batch may run through successors")},
}


database = database_of_file


@pytest.mark.parametrize(
    "case_id", [i for i in CASES if listed(i, BY_A_GROUP) and i[:2] in ("CP", "UB")]
)
def test_case(database: Database, case_id: str) -> None:
    assert ANSWERS[case_id](database, CASES[case_id]) == expected(case_id, DIFFERENT)


def state_of(group: Group, name: str) -> str:
    [row] = group.rows("SELECT state FROM checkpoint WHERE group_id = :g AND name = :n", n=name)
    return str(row.state)


def awaited(group: Group, reader_id: str) -> str | None:
    """The first checkpoint that waits for a reader."""
    found = group.rows(
        """SELECT c.name FROM checkpoint c JOIN reader_batch b USING (group_id)
        WHERE group_id = :g AND c.state = 'waiting' AND b.batch_id = ANY(c.waits_for)
          AND b.state = 'open' AND b.reader_id = :r ORDER BY c.created_at LIMIT 1""",
        r=reader_id,
    )
    return found[0].name if found else None


def outstanding(group: Group) -> list[str]:
    found = group.rows(
        "SELECT name FROM checkpoint WHERE group_id = :g AND state = 'waiting' ORDER BY created_at"
    )
    return [row.name for row in found]


@case("CP-01")
def a_checkpoint_without_readers(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0])
    barrier(group, "foo")
    return {
        "complete": state_of(group, "foo") == "complete",
        "last_checkpoint_positions": cut_of(group, "foo"),
    }


def readers_at_work(database: Database, *names: str, max_outstanding: int = 3) -> Any:
    """A group each of whose readers has a batch open: one of two segments' ten events."""
    lane, group = grouped(database, [0] * len(names), events=10)
    update_reader_group(
        database, group.name, max_outstanding=max_outstanding, request_id=unique("update")
    )
    readers = {name: group.reader(name) for name in names}
    return lane, group, {name: (r, r.must_open()) for name, r in readers.items()}


@case("CP-03")
def whom_a_checkpoint_waits_for(database: Database, given: dict[str, Any]) -> Any:
    _, group, open_ = readers_at_work(database, "a", "b")
    group.reader("c")
    barrier(group, "foo")
    said = [[awaited(group, name) for name in "abc"]]
    reader, batch = open_["a"]
    reader.commit(batch)
    said.append([awaited(group, name) for name in "ab"])
    prune_checkpoints(database, 0.0)
    return [*said, [awaited(group, name) for name in "ab"]]


@case("CP-05")
def outstanding_checkpoints_are_removed(database: Database, given: dict[str, Any]) -> Any:
    _, group, open_ = readers_at_work(database, *given["setup"]["readers"])
    for name in given["setup"]["begun"]:
        barrier(group, name)
    reader, batch = open_["a"]
    reader.commit(batch)
    said: list[Any] = [len(outstanding(group)), "-"]
    for name in outstanding(group):
        cancel_checkpoint(database, group.name, name, request_id=unique("cancel"))
    return [*said, len(outstanding(group))]


@case("CP-07")
def cuts_for_other_purposes_are_no_checkpoints(database: Database, given: dict[str, Any]) -> Any:
    lane, group = grouped(database, [0])
    lane.append({"0.0": [1, 2]})
    reader = group.reader("a")

    def released() -> bool:
        """Whether retention knows of every complete checkpoint."""
        found = group.rows(
            "SELECT name FROM checkpoint WHERE group_id = :g AND state = 'complete' "
            "AND NOT released"
        )
        return not found

    batch = reader.must_open(budget=1)
    barrier(group, "1")
    said: list[Any] = [released()]
    reader.commit(batch)
    assert group.released() == {"0.0": 1}
    said.append(released())
    read_to(reader, 2)
    said.append({"S1": position(group)["0"]})
    return [*said, {"S1": cut_of(group, "1")["0"]}]


@case("CP-09")
def checkpoints_in_the_order_in_which_they_were_asked_for(
    database: Database, given: dict[str, Any]
) -> Any:
    lane, group = grouped(database, [0])
    lane.append({"0.0": [1, 1, 1]})
    reader = group.reader("r")
    batch = reader.must_open(budget=1)
    said: list[Any] = [awaited(group, "r")]
    barrier(group, "CP1")
    said.append([awaited(group, "r"), awaited(group, "r")])
    reader.commit(batch)
    said.append(awaited(group, "r"))
    batch = reader.must_open(budget=1)
    for name in ("CP2", "CP3"):
        barrier(group, name)
    said.append(awaited(group, "r"))
    for _ in range(3):
        reader.commit(batch)
        said.append(awaited(group, "r"))
    return said


@case("CP-11")
def what_nobody_owns_is_part_of_a_checkpoint(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0, 1, 2], events=10)
    r1, r2 = group.reader("r1"), group.reader("r2")
    barrier(group, "CP1")
    taken = [acquired(group, r1), acquired(group, r2)]
    cut = ",".join(f"{s}:{o}" for s, o in cut_of(group, "CP1").items())
    return [taken, f"{state_of(group, 'CP1')} with {{{cut}}}"]


@case("CP-13")
def a_checkpoint_has_what_its_batches_read(database: Database, given: dict[str, Any]) -> Any:
    _, group = grouped(database, [0, 1, 2], events=10)
    open_ = [(r, r.must_open()) for r in [group.reader("r1"), group.reader("r2")]]
    assigned = sum(len(group.owned(name)) for name in ("r1", "r2"))
    barrier(group, "c")
    for reader, batch in open_:
        reader.commit(batch)
    assert cut_of(group, "c") == position(group)
    cut = ",".join(f"{s}:{o}" for s, o in position(group).items())
    return [f"{assigned} segments assigned", f"group positions are {{{cut}}}"]


@case("CP-15")
def outstanding_checkpoints_are_cancelled(database: Database, given: dict[str, Any]) -> Any:
    most = given["setup"]["max_outstanding"]
    _, group, open_ = readers_at_work(database, "a", "b", "c", max_outstanding=most)

    def initiated(name: str) -> str:
        try:
            barrier(group, name)
        except Conflict:
            return "rejected"
        return {"waiting": "pending"}[state_of(group, name)]

    assert [initiated(name) for name in "12"] == ["pending", "pending"]
    said = [initiated("3"), initiated("4")]
    for name in outstanding(group):
        cancel_checkpoint(database, group.name, name, request_id=unique("cancel"))
    said.append(initiated("5"))
    seen = {awaited(group, name) for name in open_}
    for reader, batch in open_.values():
        reader.commit(batch)
    assert (seen, state_of(group, "5")) == ({"5"}, "complete")
    assert [state_of(group, name) for name in "123"] == ["cancelled"] * 3
    with raises("position_invalid cancelled complete"):
        reset_reader_group(database, group.name, "checkpoint 1", request_id=unique("reset"))
    return [
        *said,
        'each reader sees only Checkpoint5; 5 completes; 1,2,3 fail ("cleared before results '
        'could be read")',
    ]


@case("CP-17")
def who_comes_after_one_that_went_offline(database: Database, given: dict[str, Any]) -> Any:
    size = 30
    lane, group = grouped(database, [0])
    lane.append({"0.0": [1, 1, 1, 1]})
    reader = group.reader("r")
    read_to(reader, 1)
    checkpoint(database, group.name, name="chk1")
    said = [f"chk1 at {size * cut_of(group, 'chk1')['0']}"]
    read_to(reader, 1)
    said.append(f"stream cut {{0:{size * position(group)['0']}}}")
    reader_offline(database, group.name, "r", request_id=unique("offline"))
    other = group.reader("other")
    said.append(f"event {other.must_open(budget=1).bounds[0].start + 1}")
    with raises("events_would_repeat"):
        reset_reader_group(database, group.name, "checkpoint chk1", request_id=unique("reset"))
    reset_reader_group(
        database, group.name, "checkpoint chk1", allow_repeat=True, request_id=unique("reset")
    )
    event = group.reader("other").must_open(budget=1).bounds[0].start + 1
    assert f"event {event} (restarts at 30)" == given["expected"][2]
    return said


@case("CP-19")
def when_successors_are_handed_out(database: Database, given: dict[str, Any]) -> Any:
    lane, group = grouped(database, [0, 0], events=5)
    quarters = [KeyRange(0, 0.25), KeyRange(0.25, 0.5), KeyRange(0.5, 1)]
    created = lane.scale("0.0", "1.0", ranges=quarters)
    for _ in range(2):
        lane.append(dict.fromkeys(created, 5))
    readers = [group.reader("a"), group.reader("b")]

    def next_reads() -> str:
        """What both readers get, five events of a segment at a time."""
        batches = [reader.must_open(budget=5) for reader in readers]
        for reader, batch in zip(readers, batches, strict=True):
            reader.commit(batch)
        new = {bound.segment_id >> 32 for batch in batches for bound in batch.bounds} == {1}
        return "events from new segments" if new else "others"

    assert next_reads() == "others"
    said: list[Any] = [next_reads()]
    checkpoint(database, group.name, name="cp1")
    said.append(next_reads())
    return [*said, list(map(theirs, group.cut()))]


@case("UB-01")
def unread_from_the_last_checkpoint_to_the_end(database: Database, given: dict[str, Any]) -> Any:
    starts = list(given["setup"]["last_checkpoint"].values())
    ends = given["setup"]["end_cut"].values()
    lane = Lane.made(database, segments=len(starts))
    lane.append({f"{i}.0": [at, 90] for i, at in enumerate(starts)})
    end = ", ".join(f"{i}.0={at}" for i, at in enumerate(ends))
    group = Group.made(lane, end=end)
    read_to(group.reader(), sum(starts))
    checkpoint(database, group.name, name="last")
    assert list(cut_of(group, "last").values()) == starts
    return unread(group)


def unread(group: Group) -> int:
    """Events from the newest checkpoint (or the position) to the end of the group."""
    [row] = group.rows(
        "SELECT events_since_checkpoint FROM unread WHERE reader_group = :name", name=group.name
    )
    return int(row.events_since_checkpoint)


@case("UB-03")
def reading_alone_lowers_nothing(database: Database, given: dict[str, Any]) -> Any:
    size = given["setup"]["event_bytes"]
    lane, group = grouped(database, [0])
    reader = group.reader()
    said = [unread(group)]
    lane.append({"0.0": 2})
    reader.read_all()
    group.checkpoint()
    said.append(unread(group))
    lane.append({"0.0": 1})
    said.append(unread(group))
    group.cut()
    reader.read_all()
    said.append(unread(group))
    lane.append({"0.0": 1})
    return [size * events for events in [*said, unread(group)]]
