"""Policies: what is refused, and how they come from the forms into the catalogue."""

from datetime import timedelta
from typing import Any

import pytest

from tests.controller.support import Lane, unique
from tests.raises import raises
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.retention_policy import Policy
from weir.operations import CreateStream, UpdateStream, parse

LIMITS = {"retain_min_age": 86400, "retain_max_age": 604800, "retain_max_bytes": 10**9}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"min_age": 0}, "argument_invalid minimum age 0"),
        ({"max_bytes": -5}, "argument_invalid maximum bytes -5"),
        ({"max_age": 10**12 * 86400}, "argument_invalid 366,000 d"),
        (
            {"min_bytes": 10**12 * 10**12},
            "argument_invalid minimum bytes 1000000000000000000000000",
        ),
        ({"min_age": 86400, "max_age": 3600}, "arguments_conflict age 1 h 1 d"),
        ({"min_bytes": 2 * 10**9, "max_bytes": 10**6}, "arguments_conflict 1 MB 2 GB"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused_with_the_limit(
    limits: dict[str, int], said: str
) -> None:
    with raises(said):
        Policy(**limits).check()  # type: ignore[arg-type]  # limits are numbers


def test_a_minimum_may_be_the_maximum_and_units_are_not_compared() -> None:
    Policy(min_age=60, max_age=60, min_bytes=10**12, max_bytes=10**12).check()


def configuration(lane: Lane) -> Any:
    [row] = lane.rows("SELECT * FROM stream_configuration WHERE stream = :n", n=str(lane.name))
    return row


def test_limits_are_kept_with_the_stream_and_changed_by_name(shared_database: Database) -> None:
    lane = Lane.made(shared_database, **LIMITS, cuts_every=600)
    row = configuration(lane)
    assert (row.retain_min_age, row.retain_max_age) == (timedelta(days=1), timedelta(days=7))
    assert (row.retain_min_bytes, row.retain_max_bytes) == (None, 10**9)
    assert (row.cuts_every, row.retention_every) == (timedelta(minutes=10), None)
    update_stream(
        lane.database, lane.name, {"retain_max_bytes": None, "retention_every": 7200},
        request_id=unique("update"),
    )  # fmt: skip
    row = configuration(lane)
    assert (row.retain_max_bytes, row.retention_every) == (None, timedelta(hours=2))
    assert row.retain_max_age == timedelta(days=7)


def test_an_update_that_contradicts_what_is_there_is_refused(shared_database: Database) -> None:
    lane = Lane.made(shared_database, **LIMITS)
    with raises("arguments_conflict 2 h 1 d"):
        update_stream(lane.database, lane.name, {"retain_max_age": 7200}, request_id=unique("u"))
    with raises("argument_invalid cuts_every 0 s"):
        update_stream(lane.database, lane.name, {"cuts_every": 0}, request_id=unique("u"))
    assert configuration(lane).retain_max_age == timedelta(days=7)


def test_the_forms_take_ages_and_sizes_as_people_write_them() -> None:
    given = {"stream": "nyc/flights", "retain_min_age": "36 h", "retain_max_bytes": "1.5 GB"}
    made = parse(CreateStream, {**given, "routing_key": "tailnum"})
    assert made.configuration.retention == Policy(True, 129_600, None, None, 1_500_000_000)
    changed = parse(UpdateStream, {"stream": "nyc/flights", "retain_min_age": "none"})
    assert changed.changes == {"retain_min_age": None}
    with raises("argument_invalid retain_max_age '7 weeks'"):
        parse(UpdateStream, {**given, "retain_max_age": "7 weeks"})
