"""What the forms of a stream make of a scaling policy."""

from typing import Any

import pytest

from tests.raises import raises
from weir.model.stream_configuration import Configuration
from weir.operations.form import parse
from weir.operations.stream_forms import CreateStream, UpdateStream

NAMED = {"stream": "s/events"}


def test_fields_that_are_left_as_they_come_make_a_stream_that_never_scales() -> None:
    form = parse(CreateStream, {**NAMED, "routing_key": "k"})
    assert form.configuration == Configuration("k")
    assert parse(UpdateStream, NAMED).changes == {}


def test_a_policy_is_created_with_all_its_settings() -> None:
    form = parse(CreateStream, {
        **NAMED, "routing_key": "k", "scaling": "byte_rate", "target_rate": 1000,
        "min_segments": 2, "max_segments": "16", "scale_cooldown": "30 min",
    })  # fmt: skip
    policy = form.configuration.scaling_policy
    assert (policy.kind, policy.unit, policy.target_rate) == ("byte_rate", "bytes", 1000)
    assert (policy.scale_factor, policy.min_segments, policy.max_segments) == (2, 2, 16)
    assert policy.cooldown == 1800


@pytest.mark.parametrize(
    ("given", "changes"),
    [
        ({"max_segments": "none"}, {"max_segments": None}),
        ({"max_segments": "12"}, {"max_segments": 12}),
        ({"scale_cooldown": "none"}, {"scale_cooldown": 0}),
        ({"scale_cooldown": "1 h"}, {"scale_cooldown": 3600}),
        ({"scaling": "fixed"}, {"scaling": "fixed"}),
        ({"target_rate": 7, "scale_factor": 3}, {"target_rate": 7, "scale_factor": 3}),
    ],
)
def test_an_update_changes_what_is_filled_in(
    given: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert parse(UpdateStream, {**NAMED, **given}).changes == changes


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many", "100000"])
def test_a_maximum_that_is_no_number_of_segments_is_refused(wrong: str) -> None:
    with raises("argument_invalid max_segments"):
        parse(UpdateStream, {**NAMED, "max_segments": wrong})
