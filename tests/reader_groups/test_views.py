"""What the views say of groups: who reads what, how far behind, and what waits for whom."""

from datetime import timedelta
from typing import Any

import pytest

from tests.world.groups import Group
from tests.world.streams import BYTES_PER_EVENT, Lane, run, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.readers import leave, reader_offline
from weir.reader_groups.groups.reset import reset_reader_group


def see(group: Group, view: str, where: str = "true") -> list[dict[str, Any]]:
    """What a view says of the group."""
    found = group.rows(
        f"SELECT * FROM {view} WHERE reader_group = :name AND {where} AND :g > 0", name=group.name
    )
    return [{k: v for k, v in row._mapping.items() if k != "reader_group"} for row in found]


def only(group: Group, view: str, where: str = "true") -> dict[str, Any]:
    [one] = see(group, view, where)
    return one


def unread(group: Group) -> tuple[int, int]:
    """Bytes since the last checkpoint, and since the position."""
    row = only(group, "unread")
    for since in ("checkpoint", "position"):
        assert row[f"bytes_since_{since}"] == row[f"events_since_{since}"] * BYTES_PER_EVENT
    return row["bytes_since_checkpoint"], row["bytes_since_position"]


def test_every_batch_that_is_over_says_when(lane: Lane) -> None:
    lane.append({"0.0": [5, 5], "1.0": [5, 5]})
    group = Group.made(lane)
    reader = group.reader()
    split_batch(group.database, reader.must_open(), "it failed")
    reader.commit(reader.must_open())
    reader.must_open()
    reset_reader_group(group.database, group.name, "tail", request_id=unique("reset"))
    lane.append({"0.0": 5})
    last = group.reader().must_open()
    reader_offline(
        group.database, group.name, last.reader_id, "0.0=12", request_id=unique("offline")
    )
    group.reader().must_open()
    batches = sorted(see(group, "batches"), key=lambda batch: batch["batch_id"])
    ended = [(b["state"], b["ended_at"]) for b in batches]
    states = [state for state, _ in ended]
    assert states == ["split", "committed", "abandoned", "abandoned", "open"]
    times = [at for _, at in ended[:-1]]
    assert times == sorted(times)
    assert all(b["ended_at"] > b["opened_at"] for b in batches[:-1])
    assert (ended[-1][1], batches[1]["committed_at"]) == (None, times[1])


# Unread (beside the conformance cases UB-01 to UB-04).


def test_without_a_checkpoint_unread_counts_from_the_position(lane: Lane) -> None:
    lane.append({"0.0": [3, 4]})
    group = Group.made(lane)
    assert unread(group) == (70, 70)
    reader = group.reader()
    reader.commit(reader.must_open(budget=3))
    assert unread(group) == (40, 40)
    assert only(group, "unread")["checkpoint"] is None


def test_a_checkpoint_that_still_waits_does_not_count(lane: Lane) -> None:
    lane.append({"0.0": 2})
    group = Group.made(lane)
    reader = group.reader()
    batch = reader.must_open()
    checkpoint(group.database, group.name, name="b", barrier=True, request_id=unique("b"))
    assert unread(group) == (20, 20)
    assert only(group, "unread")["checkpoint"] is None
    reader.commit(batch)
    assert unread(group) == (0, 0)
    assert only(group, "unread")["checkpoint"] == "b"


def test_a_group_that_was_reset_to_before_its_checkpoint_counts_from_there(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane)
    group.reader().read_all()
    group.checkpoint("all")
    reset_reader_group(
        group.database, group.name, "start", allow_repeat=True, request_id=unique("reset")
    )
    assert unread(group) == (50, 50)


def test_what_was_truncated_since_the_checkpoint_is_not_unread(lane: Lane) -> None:
    lane.append({"0.0": [2, 2, 6]})
    group = Group.made(lane, subscriber=False, on_gap="skip")
    reader = group.reader()
    reader.commit(reader.must_open(budget=2))
    group.checkpoint("two")
    lane.truncate("0.0=4, 1.0=0")
    assert unread(group) == (60, 60)
    reader.read_all()
    assert unread(group) == (60, 0)


# Lag, and the end.


def test_lag_is_between_events_and_not_between_other_things_that_have_a_clock(lane: Lane) -> None:
    group = Group.made(lane)
    first = lane.append({"0.0": 1})
    lane.scale("1.0")
    row = only(group, "lag")
    assert (row["unread_events"], row["lag"]) == (1, timedelta(0)), "it is the newest there is"
    assert row["behind_since"].timestamp() == pytest.approx(first.clock / 1e6, abs=1e-5)
    assert row["waiting"] > timedelta(0), "what was appended at once is late, too"
    assert only(group, "lag")["waiting"] > row["waiting"]
    assert only(group, "catch_up")["waiting"] > row["waiting"]
    last = lane.append({"0.0": 1})
    lag = timedelta(microseconds=last.clock - first.clock)
    assert only(group, "lag")["lag"] == lag
    group.reader().read_all()
    row = only(group, "lag")
    assert (row["unread_events"], row["lag"], row["behind_since"]) == (0, timedelta(0), None)
    assert row["waiting"] == timedelta(0)


def test_what_lies_behind_the_end_of_a_group_is_not_unread(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    group = Group.made(lane, end="tail")
    lane.append({"0.0": 7})
    low, _ = lane.scale("0.0")
    lane.append({low: 9})
    row = only(group, "lag")
    assert (row["unread_events"], row["at_end"]) == (10, False)
    assert row["end_cut"] == {"0.0": 5, "1.0": 5}
    group.reader().read_all()
    row = only(group, "lag")
    assert (row["unread_events"], row["unread_bytes"], row["lag"]) == (0, 0, timedelta(0))
    assert (row["at_end"], only(group, "reader_groups")["at_end"]) == (True, True)


def test_what_was_truncated_behind_the_end_of_a_group_is_not_lost(lane: Lane) -> None:
    lane.append({"0.0": [2, 3, 4]})
    group = Group.made(lane, end="0.0=5, 1.0=0", subscriber=False)
    lane.truncate("0.0=2, 1.0=0")
    row = only(group, "lag")
    assert (row["lost_events"], row["unread_events"], row["at_end"]) == (2, 3, False)
    lane.truncate("0.0=9, 1.0=0")
    row = only(group, "lag")
    assert (row["lost_events"], row["unread_events"], row["at_end"]) == (5, 0, True)


def test_a_group_is_at_its_end_when_all_its_streams_are_sealed_and_read(lane: Lane) -> None:
    other = Lane.made(lane.database)
    lane.append({"0.0": 3})
    group = Group.made(lane, other)
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    by_stream = f"stream = '{lane.name}'"
    assert (only(group, "lag", by_stream)["at_end"], only(group, "reader_groups")["at_end"]) == (
        False, False,
    )  # fmt: skip
    reader = group.reader()
    batch = reader.must_open()
    assert only(group, "lag", by_stream)["at_end"] is False, "it is not committed yet"
    reader.commit(batch)
    assert only(group, "lag", by_stream)["at_end"] is True
    assert only(group, "reader_groups")["at_end"] is False, "the other one goes on"
    seal_stream(lane.database, other.name, request_id=unique("seal"))
    assert only(group, "reader_groups")["at_end"] is True


# Catching up.


def batch_of(group: Group, events: int, ago: float, seconds: float) -> None:
    """A batch that was committed so many seconds ago and took so long."""
    run(
        group.database,
        """INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state,
                                     bounds, events, bytes, opened_at, committed_at, ended_at)
        SELECT :g, :name, coalesce(max(batch_id), 0) + 1, 'r', 1, 'committed', '[]', :events, 0,
               now() - (:ago + :took) * interval '1 second', now() - :ago * interval '1 second',
               now() - :ago * interval '1 second'
        FROM reader_batch WHERE group_id = :g""",
        g=group.group_id, name=group.name, events=events, ago=ago, took=seconds,
    )  # fmt: skip


def older(lane: Lane, seconds: float) -> None:
    """Let the stream and its appends be so much older than they are."""
    run(
        lane.database,
        """WITH appended AS (
            UPDATE transaction SET clock = clock - CAST(:by AS bigint) * 1000000
            WHERE stream_id = :s
        )
        UPDATE stream SET created_at = created_at - :by * interval '1 second'
        WHERE stream_id = :s""",
        s=lane.stream_id, by=seconds,
    )  # fmt: skip


def test_catch_up_is_what_is_unread_over_how_much_faster_it_is_read_than_appended(
    lane: Lane,
) -> None:
    lane.append({"0.0": 36_000})
    older(lane, 3599)
    older(lane, 3600)  # the stream is older than an hour, its first append too
    lane.append({"0.0": 7200})
    group = Group.made(lane)
    row = only(group, "catch_up")
    assert row["append_rate"] == pytest.approx(2)
    assert (row["read_rate"], row["catch_up"]) == (None, None), "nobody has read"
    # Two readers at the same time for 10 s, then one for 10 s: 20 s in which 480 events were read.
    batch_of(group, 100, ago=100, seconds=10)
    batch_of(group, 180, ago=100, seconds=10)
    batch_of(group, 200, ago=50, seconds=10)
    batch_of(group, 1_000_000, ago=3700, seconds=1)  # long ago
    row = only(group, "catch_up")
    assert (row["unread_events"], row["unread_bytes"]) == (43_200, 432_000)
    assert row["read_rate"] == pytest.approx(24, rel=0.01)
    assert row["catch_up"].total_seconds() == pytest.approx(43_200 / 22, rel=0.01)


def test_a_group_that_reads_slower_than_is_appended_does_not_catch_up(lane: Lane) -> None:
    older(lane, 7200)
    lane.append({"0.0": 7200})
    group = Group.made(lane)
    batch_of(group, 20, ago=10, seconds=10)
    assert only(group, "catch_up")["catch_up"] is None
    batch_of(group, 2000, ago=20, seconds=10)
    assert only(group, "catch_up")["catch_up"] > timedelta(0)


def test_a_group_that_has_caught_up_needs_no_time(lane: Lane) -> None:
    lane.append({"0.0": 5})
    group = Group.made(lane)
    group.reader().read_all()
    row = only(group, "catch_up")
    assert (row["catch_up"], row["unread_events"], row["lag"]) == (timedelta(0), 0, timedelta(0))


def test_nothing_is_appended_to_what_is_sealed_or_lies_before_an_end(lane: Lane) -> None:
    lane.append({"0.0": 5000})
    bounded, to_the_end = Group.made(lane, end="tail"), Group.made(lane)
    assert only(bounded, "catch_up")["append_rate"] == 0
    assert only(to_the_end, "catch_up")["append_rate"] > 0
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    assert only(to_the_end, "catch_up")["append_rate"] == 0
    batch_of(to_the_end, 100, ago=1, seconds=10)
    catch_up = only(to_the_end, "catch_up")["catch_up"]
    assert catch_up.total_seconds() == pytest.approx(500)


# Who reads what.


def test_assignment_shows_how_the_segments_are_shared_out(database: Database) -> None:
    lane = Lane.made(database, segments=4)
    lane.append({"0.0": 8, "1.0": 4, "2.0": 4, "3.0": 1})
    group = Group.made(lane)
    assert see(group, "assignment") == [
        {"reader_id": None, "segments": 4, "key_space": 1, "unread_events": 17, "batch_id": None}
    ]
    a, b = group.reader("a"), group.reader("b")
    first = a.must_open(expected=2)
    rows = {row["reader_id"]: row for row in see(group, "assignment")}
    assert rows["a"]["unread_events"] + rows[None]["unread_events"] == 17
    assert (rows["a"]["batch_id"], rows[None]["batch_id"]) == (first.batch_id, None)
    second = b.must_open()
    rows = {row["reader_id"]: row for row in see(group, "assignment")}
    assert set(rows) == {"a", "b"}
    assert abs(rows["a"]["unread_events"] - rows["b"]["unread_events"]) <= 1
    assert sum(row["key_space"] for row in rows.values()) == pytest.approx(1)
    assert {row["reader_id"]: (row["segments"], row["unread_events"], row["batch_id"])
            for row in see(group, "readers")} == {
        r: (rows[r]["segments"], rows[r]["unread_events"], n.batch_id)
        for r, n in (("a", first), ("b", second))
    }  # fmt: skip
    a.commit(first)
    assert only(group, "readers", "reader_id = 'a'")["unread_events"] == 0


def test_a_reader_that_owns_nothing_is_listed(lane: Lane) -> None:
    group = Group.made(lane)
    group.reader("idle")
    row = only(group, "readers")
    assert (row["reader_id"], row["segments"], row["unread_events"], row["batch_id"]) == (
        "idle", 0, 0, None,
    )  # fmt: skip


def test_positions_say_how_much_is_in_each_segment(lane: Lane) -> None:
    lane.append({"0.0": 6, "1.0": 2})
    group = Group.made(lane)
    reader = group.reader()
    reader.commit(reader.must_open(budget=1))
    lane.append({"0.0": 3})
    [merged] = lane.scale("0.0", "1.0", parts=1)
    lane.append({merged: 9})
    found = {row["segment"]: row for row in see(group, "positions")}
    assert {name: row["unread_events"] for name, row in found.items()} == {
        name: end - found[name]["next_offset"] for name, end in (("0.0", 9), ("1.0", 2))
    }
    assert (found["0.0"]["key_low"], found["0.0"]["key_high"]) == (0, 0.5)


def test_positions_count_nothing_that_was_truncated_as_unread(lane: Lane) -> None:
    lane.append({"0.0": 6, "1.0": 2})
    first = Group.made(lane, on_gap="skip")
    low, high = lane.scale("0.0", parts=2)
    lane.append({high: 5})
    [merged] = lane.scale(high, "1.0", parts=1)
    lane.append({merged: 9})
    ahead = Group.made(lane, start=f"{low}=0, {high}=1, 1.0=2")

    def left(group: Group) -> dict[str, int]:
        return {row["segment"]: row["unread_events"] for row in see(group, "positions")}

    for head, of_first, of_ahead in (
        ("0.0=4, 1.0=0", {"0.0": 2, "1.0": 2}, {low: 0, high: 4, "1.0": 0}),
        (f"0.0=5, {merged}=future", {"0.0": 1, "1.0": 0}, {low: 0, high: 4, "1.0": 0}),
        (f"{low}=0, {high}=3, {merged}=future", {"0.0": 0, "1.0": 0}, {low: 0, high: 2, "1.0": 0}),
        (f"{low}=0, {merged}=4", {"0.0": 0, "1.0": 0}, {low: 0, high: 0, "1.0": 0}),
    ):
        lane.truncate(head)
        assert (left(first), left(ahead)) == (of_first, of_ahead), head


def test_open_batches_say_who_has_them_since_when(lane: Lane) -> None:
    lane.append({"0.0": 6, "1.0": 2})
    group = Group.made(lane)
    reader = group.reader("task")
    batch = reader.must_open()
    assert only(group, "reader_groups")["open_batches"] == 1
    row = only(group, "open_batches")
    assert timedelta(0) < row.pop("open_for") < timedelta(minutes=1)
    opened = row.pop("opened_at")
    assert row == {
        "batch_id": batch.batch_id, "reader_id": "task", "attempt": 1, "segments": 2,
        "events": 8, "bytes": 80, "lease_expired": False,
    }  # fmt: skip
    leave(group.database, group.name, "task", reader.token, 60)
    assert only(group, "open_batches")["lease_expired"] is True
    group.reader("other").must_open()
    row = only(group, "open_batches")
    assert (row["reader_id"], row["attempt"], row["opened_at"]) == ("other", 2, opened)
    assert row["lease_expired"] is False


def test_a_waiting_checkpoint_names_the_batches_it_waits_for(lane: Lane) -> None:
    lane.append({"0.0": 5, "1.0": 5})
    group = Group.made(lane)
    a, b = group.reader("a"), group.reader("b")
    first, second = a.must_open(expected=2), b.must_open(expected=2)
    checkpoint(group.database, group.name, name="x", barrier=True, request_id=unique("b"))
    row = only(group, "checkpoints")
    assert (row["state"], row["waits_for"], row["ended_at"]) == (
        "waiting", [first.batch_id, second.batch_id], None,
    )  # fmt: skip
    a.commit(first)
    lane.append({"0.0": 5, "1.0": 5})
    third = a.must_open()  # opened later: nobody waits for it
    group.lapse("b")
    row = only(group, "checkpoint_blockers")
    assert (row["checkpoint"], row["batch_id"], row["reader_id"], row["lease_expired"]) == (
        "x", second.batch_id, "b", True,
    )  # fmt: skip
    b.commit(second)
    assert see(group, "checkpoint_blockers") == []
    assert [row["batch_id"] for row in see(group, "open_batches")] == [third.batch_id]
    assert only(group, "checkpoints")["state"] == "complete"
    assert only(group, "reader_groups")["checkpoint"] == "x"
