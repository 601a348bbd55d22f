"""Runs of scaling by load: what they change, what they record, and what they leave alone."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.controller.operations import equal_ranges
from tests.watching import count_statements
from tests.world.scaling import made, never, pass_time, scaled, write
from tests.world.streams import Lane, rows, run, unique
from weir.controller.seal import seal_stream
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.model.split_points import Found, HotKey, HotSegment, SplitPoints
from weir.retention.prune import prune
from weir.scaling.run import scale_by_load


def decisions(lane: Lane) -> list[tuple[str, str]]:
    """Action and rule of what is recorded, oldest first."""
    return [
        (row.action, row.rule)
        for row in rows(
            lane.database,
            "SELECT action, rule FROM scale_decisions WHERE stream = :name ORDER BY decided_at",
            name=str(lane.name),
        )
    ]


def epochs(lane: Lane) -> list[str]:
    """What caused each epoch."""
    return [row.cause for row in lane.rows("SELECT cause FROM epoch WHERE stream_id = :s "
                                           "ORDER BY epoch")]  # fmt: skip


def test_a_hot_segment_is_split_at_the_points_that_were_found(shared_database: Database) -> None:
    lane = made(shared_database)
    write(lane, {"0.0": 35.0})
    asked: list[HotSegment] = []

    def find(hot: Sequence[HotSegment]) -> Found:
        asked.extend(hot)
        return Found({(lane.stream_id, 0): SplitPoints((0.1, 0.3), (0.3, 0.3, 0.4), ())}, {})

    done = scaled(lane, find)
    [one] = asked
    assert (one.segment.segment_id, one.pieces, one.target_rate, one.unit) == (0, 3, 10, "events")
    assert one.rate == pytest.approx(35.0)
    assert (done["action"], done["rule"]) == ("split", "hot")
    assert [(low, high) for _, low, high in done["created"]] == [(0, 0.1), (0.1, 0.3), (0.3, 1)]
    assert lane.active() == ["1.1", "2.1", "3.1"]
    assert epochs(lane) == ["create", "policy"]
    [row] = lane.rows("SELECT * FROM scale_decision WHERE stream_id = :s")
    assert (row.epoch, row.policy) == (0, "event_rate 10 4 1 - 600")
    assert row.changes == [{"segments": ["0.0"], "rate": pytest.approx(35.0), "points": [0.1, 0.3]}]
    assert row.loads[0]["rates"] == pytest.approx([35.0] * 4)
    assert row.commit_interval == pytest.approx(60_000_000, rel=0.01)


def test_copies_by_a_roll_keep_the_rates_the_cool_down_and_the_cold_of_their_originals(
    shared_database: Database,
) -> None:
    lane = made(shared_database, 2)
    write(lane, {"0.0": 8.0, "1.0": 2.0})
    late = lane.opened()
    lane.scale("0.0")
    assert lane.active() == ["2.1", "3.1", "1.0"]
    write(lane, {"2.1": 2.0, "3.1": 2.0, "1.0": 9.0}, minutes=30)
    lane.commit(late, {"0.0": 1})
    assert epochs(lane)[-2:] == ["roll", "roll"]
    assert lane.active() == ["2.3", "3.3", "1.3"]
    found = rows(
        lane.database, "SELECT * FROM segment_rates WHERE stream = :name ORDER BY key_low",
        name=str(lane.name),
    )  # fmt: skip
    assert [row.rate_20_min for row in found] == pytest.approx([2.0, 2.0, 9.0], rel=0.05)
    pass_time(lane, 1)
    done = scaled(lane, never)
    assert (done["action"], done["changes"][0]["segments"]) == ("merge", ["2.3", "3.3"])


def test_a_decision_is_void_under_another_policy(shared_database: Database) -> None:
    lane = made(shared_database)
    write(lane, {"0.0": 35.0})

    def meanwhile(hot: Sequence[HotSegment]) -> Found:
        update(lane, target_rate=1000)
        return equal_ranges(hot)

    assert scaled(lane, meanwhile)["rule"] == "void"
    assert lane.active() == ["0.0"]


def update(lane: Lane, **changes: Any) -> None:
    update_stream(lane.database, lane.name, changes, request_id=unique("update"))


def test_a_stream_that_is_sealed_meanwhile_is_left(shared_database: Database) -> None:
    lane = made(shared_database)
    write(lane, {"0.0": 35.0})

    def meanwhile(hot: Sequence[HotSegment]) -> Found:
        seal_stream(lane.database, lane.name, request_id=unique("seal"))
        return equal_ranges(hot)

    assert not scale_by_load(lane.database, meanwhile, names=[lane.name], request_id=unique("run"))
    [after] = scale_by_load(lane.database, never, names=[lane.name], request_id=unique("run"))
    assert "sealed" in after["error"]
    [missing] = scale_by_load(
        lane.database, never, names=[stream_name("test/nowhere")], request_id=unique("run")
    )
    assert "no stream test/nowhere" in missing["error"]


def test_a_stream_that_fails_does_not_stop_the_others(database: Database) -> None:
    lanes = [made(database) for _ in range(3)]
    for lane in lanes:
        write(lane, {"0.0": 35.0})
    run(
        database,
        """INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
        VALUES (:s, :name, :g, 0, 1)""",
        s=lanes[1].stream_id, name=str(lanes[1].name), g=(1 << 32) + 1,
    )  # fmt: skip

    def find(hot: Sequence[HotSegment]) -> Found:
        assert len(hot) == 3
        return Found(
            {k: v for k, v in equal_ranges(hot).points.items() if k[0] != lanes[2].stream_id},
            {lanes[2].stream_id: "a file is gone"},
        )

    done = {one["stream"]: one for one in scale_by_load(database, find, request_id="run")}
    assert done[str(lanes[0].name)]["action"] == "split"
    assert "segment_pkey" in done[str(lanes[1].name)]["error"]
    assert done[str(lanes[2].name)]["error"] == "a file is gone"
    assert [len(lane.active()) for lane in lanes] == [3, 1, 1]


def test_nothing_is_recorded_again_while_the_reason_is_the_same(shared_database: Database) -> None:
    lane = made(shared_database, 2)
    scaled(lane, never)
    scaled(lane, never)
    assert decisions(lane) == [("none", "no_interval")]
    write(lane, {"0.0": 8.0, "1.0": 7.0})
    for _ in range(3):
        scaled(lane, never)
        write(lane, {"0.0": 8.0, "1.0": 7.0}, minutes=2)
    assert decisions(lane) == [("none", "no_interval"), ("none", "steady")]


def test_old_decisions_are_pruned_but_for_the_newest(shared_database: Database) -> None:
    lane = made(shared_database, 2)
    scaled(lane, never)
    write(lane, {"0.0": 8.0, "1.0": 7.0})
    scaled(lane, never)
    assert len(decisions(lane)) == 2
    prune(lane.database, 3600.0)
    assert len(decisions(lane)) == 2
    prune(lane.database, 0.0)
    assert decisions(lane) == [("none", "steady")]


def test_a_segment_that_is_older_than_all_known_epochs_is_still_evaluated(
    shared_database: Database,
) -> None:
    lane = made(shared_database, 2)
    write(lane, {"0.0": 8.0, "1.0": 8.0})
    lane.scale("0.0", parts=2)
    write(lane, {"2.1": 8.0, "3.1": 8.0, "1.0": 35.0})
    lane.truncate("2.1=1, 3.1=1, 1.0=1")
    before = scaled(lane, dry_run=True)
    prune(lane.database, 0.0)
    assert epochs(lane) == ["scale"]
    assert before["action"] == "split"
    assert scaled(lane, dry_run=True) == before
    rates = rows(lane.database, "SELECT segment FROM segment_rates WHERE stream = :name "
                 "ORDER BY key_low", name=str(lane.name))  # fmt: skip
    assert [row.segment for row in rates] == lane.active()


def test_a_run_evaluates_only_streams_whose_decision_may_be_another(database: Database) -> None:
    lane, still = made(database, 2), made(database, 2)
    everything: Callable[..., Any] = lambda: scale_by_load(  # noqa: E731
        database, never, request_id=unique("run")
    )
    for one in (lane, still):
        write(one, {"0.0": 8.0, "1.0": 7.0})
    assert {one["rule"] for one in everything()} == {"steady"}
    counted = count_statements(database)
    assert everything() == []
    assert len(counted) == 1, "nothing has moved"
    del counted[:]
    write(lane, {"0.0": 8.0, "1.0": 7.0}, minutes=1)
    del counted[:]
    assert everything() == []
    assert len(counted) == 2, "lane has moved"
    update(still, target_rate=17)
    assert [one["rule"] for one in everything()] == ["merge_too_hot"]
    # Time alone: the load of both has ended after two intervals, and then nothing more can change.
    for one in (lane, still):
        pass_time(one, 3600)
    assert {one["action"] for one in everything()} == {"merge"}
    for one in (lane, still):
        pass_time(one, 3600)
    assert {one["rule"] for one in everything()} == {"at_minimum"}
    for one in (lane, still):
        pass_time(one, 10**6)
    del counted[:]
    assert everything() == []
    assert len(counted) == 1


def test_a_dry_run_says_what_a_run_would_do_and_changes_nothing(shared_database: Database) -> None:
    lane = made(shared_database)
    write(lane, {"0.0": 35.0})
    dry = scaled(lane, dry_run=True)
    assert (dry["action"], len(dry["changes"][0]["points"])) == ("split", 2)
    assert (lane.active(), decisions(lane)) == (["0.0"], [])
    assert scaled(lane).items() >= dry.items()


def test_a_key_that_fills_a_segment_is_named_and_the_segment_is_not_split_for_ever(
    shared_database: Database,
) -> None:
    lane = made(shared_database, 4)

    def one_key(hot: Sequence[HotSegment]) -> Found:
        whole = SplitPoints((), (), (HotKey("AA", 0.1, 1.0),))
        return Found({(one.stream_id, one.segment.segment_id): whole for one in hot}, {})

    for _ in range(2):
        write(lane, {"0.0": 90.0, "1.0": 8.0, "2.0": 8.0, "3.0": 8.0})
        assert scaled(lane, one_key)["rule"] == "one_key"
    keys = "SELECT * FROM hot_keys WHERE stream = :name"
    [key] = rows(lane.database, keys, name=str(lane.name))
    assert (key.routing_key, key.segment, key.share) == ("AA", "0.0", 1.0)
    assert key.rate == pytest.approx(90.0)
    assert key.since < key.seen_at
    # The rest is merged beside it, and the key is forgotten once its segment is no longer hot.
    write(lane, {"0.0": 90.0, "1.0": 8.0, "2.0": 1.0, "3.0": 1.0})
    assert scaled(lane, one_key)["changes"][0]["segments"] == ["2.0", "3.0"]
    write(lane, {"0.0": 8.0, "1.0": 8.0, "4.1": 8.0})
    scaled(lane, never)
    assert rows(lane.database, keys, name=str(lane.name)) == []


def test_a_key_is_hot_since_it_was_found_without_a_break(shared_database: Database) -> None:
    lane = made(shared_database, 2, max_segments=8)
    steady, often = HotKey("AA", 0.1, 0.4), HotKey("BB", 0.2, 0.4)

    def run_and_find(*keys: HotKey) -> dict[str, Any]:
        found = SplitPoints((), (), keys)
        [segment] = [name for name in lane.active() if name.startswith("0.")]
        write(lane, {segment: 90.0, "1.0": 8.0})
        scaled(lane, lambda hot: Found({(lane.stream_id, hot[0].segment.segment_id): found}, {}))
        sql = "SELECT routing_key, since FROM hot_keys WHERE stream = :name"
        return dict(tuple(row) for row in rows(lane.database, sql, name=str(lane.name)))

    first = run_and_find(steady, often)
    assert set(first) == {"AA", "BB"}
    assert run_and_find(steady) == {"AA": first["AA"]}, "the segment is hot, but BB is not"
    again = run_and_find(steady, often)
    assert again["AA"] == first["AA"]
    assert again["BB"] > first["BB"]
    assert run_and_find() == {}


def test_no_key_is_hot_in_a_stream_that_no_longer_scales_by_load(shared_database: Database) -> None:
    keys = "SELECT routing_key FROM hot_keys WHERE stream = :name"
    lanes = made(shared_database), made(shared_database)
    for lane in lanes:
        write(lane, {"0.0": 90.0})
        whole = SplitPoints((), (), (HotKey("AA", 0.1, 1.0),))
        scaled(lane, lambda hot, lane=lane, whole=whole: Found({(lane.stream_id, 0): whole}, {}))
        assert len(rows(lane.database, keys, name=str(lane.name))) == 1
    update(lanes[0], scaling="fixed")
    seal_stream(shared_database, lanes[1].name, request_id=unique("seal"))
    for _ in range(2):
        scale_by_load(shared_database, equal_ranges, request_id=unique("run"))
        assert decisions(lanes[0]) == [("none", "one_key"), ("none", "fixed")]
    for lane in lanes:
        assert rows(lane.database, keys, name=str(lane.name)) == []


def test_a_run_takes_as_many_statements_for_many_streams_as_for_few(database: Database) -> None:
    counts = []
    for more in (2, 20):
        for _ in range(more):
            write(made(database, 2), {"0.0": 8.0, "1.0": 8.0}, minutes=3)
        counted = count_statements(database)
        scale_by_load(database, never, request_id=unique("run"))
        counts.append(len(counted))
    assert counts == [2, 2]
    hot = made(database, 5, max_segments=None)
    write(hot, {f"{i}.0": 35.0 for i in range(5)}, minutes=30)
    counted = count_statements(database)
    scale_by_load(database, equal_ranges, request_id=unique("run"))
    assert len(hot.active()) == 15
    assert len(counted) <= 11, counted


def test_what_may_have_killed_its_run_is_measured_last_alone_and_rests_longer_each_time(
    database: Database,
) -> None:
    lanes = [made(database) for _ in range(3)]
    for lane in lanes:
        write(lane, {"0.0": 100})
    number = {lane.stream_id: n for n, lane in enumerate(lanes)}
    asked: list[list[int]] = []

    def dies(hot: Sequence[HotSegment]) -> Found:
        """Find points, unless the first stream is among those asked for."""
        asked.append([number[one.stream_id] for one in hot])
        if 0 in asked[-1]:
            raise RuntimeError("the process dies here")
        return equal_ranges(hot)

    def scale(**how: Any) -> list[list[int]]:
        asked.clear()
        with contextlib.suppress(RuntimeError):
            scale_by_load(database, dies, request_id=unique("scale"), **how)
        return list(asked)

    def times() -> list[int]:
        return [epochs(lane).count("policy") for lane in lanes]

    assert scale() == [[0, 1, 2]]
    assert times() == [0, 0, 0]
    assert scale() == [[0]], "each alone"
    write(lanes[1], {"0.0": 100})
    assert scale() == [[1], [2]], "the first rests, and the others are scaled"
    assert times() == [0, 1, 1]
    assert scale() == []
    rest = "UPDATE scale_measurement SET begun_at = begun_at - interval '301 seconds'"
    run(database, rest)
    write(lanes[1], dict.fromkeys(lanes[1].active(), 100))
    assert scale()[-1] == [0], "it comes after those that killed nobody"
    run(database, rest)
    assert [0] not in scale(), "the pause grows"
    run(database, rest)
    assert [0] in scale()
    assert scale(names=[lanes[0].name]) == [[0]], "somebody asks for it"
    assert scale(names=[lanes[0].name], dry_run=True) == [[0]]
    scale_by_load(database, equal_ranges, names=[lanes[0].name], request_id=unique("scale"))
    assert times()[0] == 1
    assert rows(database, "SELECT FROM scale_measurement") == []
