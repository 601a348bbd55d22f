"""Updating a stream: only what is named changes, and segments only where the policy asks."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from tests.raises import raises
from tests.world.streams import FIELDS, Lane, unique
from weir.controller.update import update_stream
from weir.model.schema import new_field

BY_RATE = {"scaling": "event_rate", "target_rate": 100}


def update(lane: Lane, changes: Mapping[str, Any], **options: Any) -> Mapping[str, Any]:
    request = options.pop("request_id", None) or unique("update")
    return update_stream(lane.database, lane.name, changes, request_id=request, **options)


def configuration(lane: Lane) -> Any:
    [row] = lane.rows("SELECT * FROM stream_configuration WHERE stream = :n", n=str(lane.name))
    return row


def test_only_what_is_named_changes(lane: Lane) -> None:
    before = configuration(lane)._asdict()
    update(lane, {"tags": ("aviation", "2013"), "on_missing_key": "spread"})
    after = configuration(lane)._asdict()
    assert {k: v for k, v in after.items() if v != before[k]} == {
        "tags": ["aviation", "2013"],
        "on_missing_key": "spread",
    }
    assert len(lane.epochs()) == 1, "no segment changes"


def test_the_new_segments_of_a_fixed_number_replace_all_and_say_why(lane: Lane) -> None:
    lane.append({"0.0": 3, "1.0": 4})
    done = update(lane, {"min_segments": 3}, request_id="dag/run/update")
    assert [name for name, _, _ in done["created"]] == lane.active() == ["2.1", "3.1", "4.1"]
    [row] = lane.rows("SELECT * FROM epoch_transition WHERE stream = :n AND epoch = 1",
                      n=str(lane.name))  # fmt: skip
    assert (row.cause, row.request_id) == ("update", "dag/run/update")
    assert row.reason == "3 segments were asked for, and there were 2"
    assert row.sealed_segments == ["0.0", "1.0"]


def test_a_stream_that_scales_by_rate_is_only_made_larger(lane: Lane) -> None:
    update(lane, {**BY_RATE, "min_segments": 1})
    assert len(lane.active()) == 2
    update(lane, {"min_segments": 5})
    assert len(lane.active()) == 5
    row = configuration(lane)
    assert (row.scaling, row.target_rate, row.scale_factor) == ("event_rate", 100, 2)
    update(lane, {"max_segments": 9, "scale_cooldown": 0})
    row = configuration(lane)
    assert (row.max_segments, row.scale_cooldown) == (9, timedelta(0))
    update(lane, {"scaling": "fixed"})
    row = configuration(lane)
    assert row.max_segments is None
    assert (row.scaling, row.target_rate, row.scale_factor) == ("fixed", None, None)


def test_no_scale_may_leave_fewer_than_the_minimum(lane: Lane) -> None:
    update(lane, {"min_segments": 2})
    with raises("limit_reached 1 2 minimum"):
        lane.scale("0.0", "1.0", parts=1)
    lane.scale("0.0", "1.0", parts=2)


def test_no_scale_may_leave_more_than_the_maximum(lane: Lane) -> None:
    update(lane, {**BY_RATE, "max_segments": 3})
    with raises("limit_reached 5 3 maximum"):
        lane.scale("0.0", parts=4)
    lane.scale("0.0", parts=2)
    update(lane, {"max_segments": 2})
    lane.scale("1.0", parts=1)


def test_columns_can_be_added_and_not_changed(lane: Lane) -> None:
    lane.append({"0.0": 1})
    gate = new_field("gate", "string")
    update(lane, {}, fields=[gate])
    row = configuration(lane)
    assert (row.schema, row.schema_version) == ([*FIELDS, gate], 2)
    with raises("column_type_differs 'gate' long string"):
        update(lane, {}, fields=[{**gate, "type": "long"}])
    update(lane, {}, fields=[gate])
    assert configuration(lane).schema_version == 2


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"routing_key": "other"}, "change_impossible change"),
        ({"colour": "red"}, "argument_invalid 'colour'"),
        ({"scaling": "automatic"}, "argument_invalid scaling 'automatic'"),
        ({"scaling": "byte_rate"}, "argument_invalid target_rate given"),
        ({"target_rate": 5}, "arguments_conflict target_rate scaling"),
        ({**BY_RATE, "scale_factor": 1}, "argument_invalid scale_factor 1"),
        ({"min_segments": 0}, "argument_invalid min_segments 0"),
        ({**BY_RATE, "target_rate": 0}, "argument_invalid target_rate 0"),
        ({**BY_RATE, "min_segments": 3, "max_segments": 2}, "arguments_conflict max_segments 2 3"),
        ({**BY_RATE, "max_segments": 0}, "argument_invalid max_segments 0"),
        ({**BY_RATE, "scale_cooldown": -1}, "argument_invalid scale_cooldown -1"),
        ({"max_segments": 5}, "arguments_conflict max_segments scaling"),
        ({"on_bad_rows": "spread"}, "argument_invalid on_bad_rows 'spread'"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_changes(
    lane: Lane, changes: dict[str, Any], says: str
) -> None:
    before = configuration(lane)
    with raises(says):
        update(lane, {"tags": ("x",), **changes})
    assert configuration(lane) == before


def test_whoever_adds_columns_is_told_which_are_new_and_which_there_are(lane: Lane) -> None:
    fields = [new_field("gate", "string")]
    for added in (["gate string"], []):
        done = update_stream(lane.database, lane.name, {}, fields=fields, request_id=unique("u"))
        assert done["added"] == added
        assert done["columns"][-1] == "gate string"
    assert "columns" not in update_stream(
        lane.database, lane.name, {"tags": ("a",)}, request_id=unique("u")
    )
