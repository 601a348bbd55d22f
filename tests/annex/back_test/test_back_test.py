"""A policy that is replayed over a recorded history does what it would have done, and no more."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from spark_jobs.back_test import BackTest
from tests.raises import raises
from tests.watching import count_statements
from tests.world.scaling import made, pass_time, scaled, write
from tests.world.streams import Lane
from weir.annex.back_test.back_test import EVENLY, PARTLY, SAMPLED, back_test
from weir.annex.back_test.recorded import recorded
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.model.scaling_policy import ScalingPolicy
from weir.model.segment_rates import MINUTE
from weir.model.split_points import Load
from weir.operations.form import parse

POLICY = ScalingPolicy("event_rate", 10, 4)


def appended_evenly(lane: Lane, rate: float, minutes: int) -> None:
    """Events at a rate per second of the whole stream, in proportion to the key ranges."""
    found = lane.rows(
        """SELECT segment_name(segment_id) AS name, key_high - key_low AS width
        FROM segment_tail JOIN segment USING (stream_id, segment_id) WHERE stream_id = :s"""
    )
    write(lane, {row.name: rate * row.width for row in found}, minutes=minutes)


def test_a_replay_makes_the_scales_that_the_real_runs_made(shared_database: Database) -> None:
    lane = made(shared_database)
    real = []
    for rate in [35.0] * 16 + [0.0] * 26:  # 80 minutes with load, 130 without
        appended_evenly(lane, rate, 5)
        report = scaled(lane)
        if report["action"] != "none":
            real.append(report["action"])
    assert {"split", "merge"} <= set(real)
    found = back_test(shared_database, lane.name)
    assert [one.action for one in found.replayed.scales] == real
    # What really happened is measured by the same code.
    assert len(found.happened.scales) == len(real)
    replayed, recorded_ = found.report()["with the policy"], found.report()["recorded"]
    assert replayed["most_segments"] == recorded_["most_segments"]
    assert replayed["largest_rate"] == pytest.approx(recorded_["largest_rate"], rel=0.15)
    assert len(found.replayed.active) == len(lane.active())


def test_a_history_that_is_too_long_is_refused(lane: Lane, monkeypatch: pytest.MonkeyPatch) -> None:
    write(lane, {"0.0": 1.0}, minutes=5)
    monkeypatch.setattr("weir.annex.back_test.recorded.MOST_ROWS", 4)
    with raises(f"answer_too_large {lane.name} 4 begin"):
        back_test(lane.database, lane.name, POLICY)


def test_an_imagined_policy_changes_nothing_and_says_what_it_would_have_done(lane: Lane) -> None:
    write(lane, {"0.0": 30.0, "1.0": 2.0}, minutes=60)
    before = lane.rows("SELECT * FROM epoch WHERE stream_id = :s")
    found = back_test(lane.database, lane.name, POLICY)
    assert lane.rows("SELECT * FROM epoch WHERE stream_id = :s") == before
    assert found.positions == EVENLY
    report = found.report()
    assert report["recorded"]["scales"] == 0
    assert report["recorded"]["largest_rate"] == pytest.approx(30, rel=0.02)
    first = report["scales"][0]
    assert first["sealed"] == ["0.0"]
    assert len(first["created"]) >= 2
    assert found.replayed.peaks[-1].rate <= 10.5
    assert json.loads(json.dumps(report)) == report
    assert "split 0.0" in "\n".join(found.table())
    assert [row["segments"] for row in report["table"]][-1] == [2, len(found.replayed.active)]


def test_splits_follow_the_positions_that_the_files_say(lane: Lane) -> None:
    write(lane, {"0.0": 30.0}, minutes=40)
    loads = [Load(0.1 + i / 10_000, 1, f"key-{i}") for i in range(100)]
    found = back_test(lane.database, lane.name, POLICY, find_loads=lambda past: loads)
    assert found.positions == PARTLY  # nothing is known of 1.0
    within = [
        one.segment
        for one in found.replayed.active
        if one.segment.key_low < 0.11 and one.segment.key_high > 0.1
    ]
    assert len(within) >= 3
    both = [*loads, Load(0.7, 1, "other")]
    found = back_test(lane.database, lane.name, POLICY, find_loads=lambda past: both)
    assert found.positions == SAMPLED


def test_a_recorded_scale_is_a_change_and_a_roll_is_none(lane: Lane) -> None:
    write(lane, {"0.0": 5.0, "1.0": 5.0}, minutes=10)
    late = lane.opened()
    lane.scale("0.0", parts=2)
    pass_time(lane, 60)
    lane.commit(late, {"0.0": 10, "1.0": 10})  # which rolls
    write(lane, {lane.active()[0]: 5.0}, minutes=10)
    past = recorded(lane.database, lane.name)
    assert [one.cause for one in past.epochs] == ["create", "scale", "roll", "roll"]
    found = back_test(lane.database, lane.name, POLICY)
    assert [len(one.created) for one in found.happened.scales] == [2]


def test_a_replay_may_begin_later_with_the_segments_of_then(lane: Lane) -> None:
    lane.append({"0.0": 1})
    pass_time(lane, 3600)
    lane.scale("0.0", parts=2)
    pass_time(lane, 3600)
    write(lane, {"1.0": 5.0}, minutes=10)
    since = datetime.fromtimestamp(
        lane.value("SELECT last_clock FROM stream WHERE stream_id = :s") / 1e6 - 1800, UTC
    )
    found = back_test(lane.database, lane.name, POLICY, since=since)
    assert len(found.happened.segments) == 3
    assert found.happened.scales == []


def test_a_history_is_read_in_as_many_statements_however_long_it_is(lane: Lane) -> None:
    counts = []
    for _ in range(2):
        for _ in range(3):
            lane.append(dict.fromkeys(lane.active(), 5))
            lane.scale(lane.active()[0], parts=2)
        statements = count_statements(lane.database)
        back_test(lane.database, lane.name, POLICY)
        counts.append(len(statements))
    assert counts[0] <= 8  # with those that begin the transaction
    assert counts[0] == counts[1]


def test_a_policy_that_never_scales_is_refused(lane: Lane) -> None:
    with raises("argument_invalid policy"):
        back_test(lane.database, lane.name)
    with raises("argument_invalid"):
        back_test(lane.database, lane.name, ScalingPolicy("event_rate", 0, 2))
    with raises("time_in_future"):
        back_test(lane.database, lane.name, POLICY, since=datetime(2999, 1, 1, tzinfo=UTC))
    with raises("stream_not_found"):
        back_test(lane.database, stream_name("test/nothing"), POLICY)


def test_a_stream_without_commits_is_replayed_as_it_is(lane: Lane) -> None:
    pass_time(lane, 3600)
    found = back_test(lane.database, lane.name, POLICY, every=MINUTE)
    assert found.replayed.scales == []
    assert found.report()["table"][-1]["segments"] == [2, 2]


def test_a_stream_from_before_the_clock_was_set_back_is_refused_in_one_sentence(lane: Lane) -> None:
    pass_time(lane, -3600)
    with raises("time_in_future check the clock"):
        back_test(lane.database, lane.name, POLICY)


@pytest.mark.parametrize(
    ("given", "policy"),
    [
        ({}, None),
        ({"target_rate": 5}, ScalingPolicy("event_rate", 5, 2)),
        ({"target_rate": 5, "scaling": "byte_rate", "scale_factor": 8, "min_segments": 2,
          "max_segments": "16", "scale_cooldown": "1 min"},
         ScalingPolicy("byte_rate", 5, 8, 2, 16, 60)),
        ({"target_rate": 5, "max_segments": "none", "scale_cooldown": "none"},
         ScalingPolicy("event_rate", 5, 2, cooldown=0)),
    ],
)  # fmt: skip
def test_the_form_makes_the_policy_that_was_filled_in(
    given: dict[str, Any], policy: ScalingPolicy | None
) -> None:
    form = parse(BackTest, {"stream": "a/b", **given})
    assert form.policy == policy
    assert form.last_seconds is None
    assert parse(BackTest, {"stream": "a/b", "last": "7 d"}).last_seconds == 7 * 86_400
