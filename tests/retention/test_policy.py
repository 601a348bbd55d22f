"""Policies: what is refused, and how they come from the forms into the catalogue."""

from datetime import timedelta
from typing import Any

import pytest

from tests.raises import raises
from tests.world.streams import Lane, unique
from weir.controller.update import update_stream
from weir.database.connection import Database
from weir.model.retention_policy import Policy
from weir.model.stream_configuration import Configuration
from weir.operations.form import parse
from weir.operations.stream_forms import CreateStream, UpdateStream

LIMITS: dict[str, Any] = {
    "retention": "consumed",
    "retain_min_age": 86400,
    "retain_max_age": 604800,
    "retain_max_bytes": 10**9,
}


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
        Policy("consumed", **limits).check()


def test_a_minimum_may_be_the_maximum_and_units_are_not_compared() -> None:
    Policy("consumed", min_age=60, max_age=60, min_bytes=10**12, max_bytes=10**12).check()


def configuration(lane: Lane) -> Any:
    [row] = lane.rows("SELECT * FROM stream_configuration WHERE stream = :n", n=str(lane.name))
    return row


def test_limits_are_kept_with_the_stream_and_changed_by_name(shared_database: Database) -> None:
    lane = Lane.made(shared_database, **LIMITS, cuts_every=600)
    row = configuration(lane)
    assert (row.retain_min_age, row.retain_max_age) == (timedelta(days=1), timedelta(days=7))
    assert (row.retain_min_bytes, row.retain_max_bytes) == (None, 10**9)
    assert row.cuts_every == timedelta(minutes=10)
    update_stream(
        lane.database, lane.name, {"retain_max_bytes": None, "cuts_every": 7200},
        request_id=unique("update"),
    )  # fmt: skip
    row = configuration(lane)
    assert (row.retain_max_bytes, row.cuts_every) == (None, timedelta(hours=2))
    assert row.retain_max_age == timedelta(days=7)


def test_an_update_that_contradicts_what_is_there_is_refused(shared_database: Database) -> None:
    lane = Lane.made(shared_database, **LIMITS)
    with raises("arguments_conflict 2 h 1 d"):
        update_stream(lane.database, lane.name, {"retain_max_age": 7200}, request_id=unique("u"))
    with raises("argument_invalid cuts_every 0 s"):
        update_stream(lane.database, lane.name, {"cuts_every": 0}, request_id=unique("u"))
    assert configuration(lane).retain_max_age == timedelta(days=7)


def test_the_forms_take_ages_and_sizes_as_people_write_them() -> None:
    given = {
        "stream": "nyc/flights", "retention": "consumed", "retain_min_age": "36 h",
        "retain_max_bytes": "1.5 GB",
    }  # fmt: skip
    made = parse(CreateStream, {**given, "routing_key": "tailnum"})
    limits = Policy("consumed", 129_600, None, None, 1_500_000_000)
    assert made.configuration.retention_policy == limits
    changed = parse(UpdateStream, {"stream": "nyc/flights", "retain_min_age": "none"})
    assert changed.changes == {"retain_min_age": None}
    with raises("argument_invalid retain_max_age '7 weeks'"):
        parse(UpdateStream, {**given, "retain_max_age": "7 weeks"})


def policy_of(form: type[Any], **given: str) -> Policy:
    made = parse(form, {"stream": "a/b", **given})
    return made.configuration.retention_policy  # type: ignore[no-any-return]


def test_a_stream_keeps_everything_unless_its_owner_says_otherwise() -> None:
    assert policy_of(CreateStream, routing_key="k") == Policy("keep", None, None, None, None)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"retain_max_age": "30 d"}, "arguments_conflict retention keep retain_max_age"),
        ({"retain_min_bytes": "1 GB"}, "arguments_conflict retention keep retain_min_bytes"),
        ({"retention": "keep", "retain_min_age": "7 d"}, "arguments_conflict retain_min_age"),
        ({"retention": "age"}, "arguments_conflict retention age needs retain_max_age"),
        (
            {"retention": "age", "retain_max_bytes": "1 GB"},
            "arguments_conflict retention age needs retain_max_age",
        ),
        ({"retention": "size"}, "arguments_conflict retention size needs retain_max_bytes"),
        ({"retention": "consumed", "retain_max_age": "3 d"}, "arguments_conflict 3 d 7 d"),
    ],
)
def test_a_limit_without_a_meaning_is_refused_and_one_that_is_needed_is_asked_for(
    given: dict[str, str], said: str
) -> None:
    with raises(said):
        policy_of(CreateStream, routing_key="k", **given)


WEEK = 7 * 86_400


@pytest.mark.parametrize(
    ("given", "min_age"),
    [
        ({}, WEEK),
        ({"retain_min_age": "none"}, None),
        ({"retain_min_age": "1 h"}, 3_600),
        ({"retain_min_age": "30 d"}, 30 * 86_400),
        ({"retain_min_bytes": "1 GB"}, WEEK),
    ],
)
def test_what_is_consumed_is_kept_for_a_week_unless_it_is_said_to_be_less(
    given: dict[str, str], min_age: int | None
) -> None:
    made = policy_of(CreateStream, routing_key="k", retention="consumed", **given)
    assert (made.retention, made.min_age) == ("consumed", min_age)
    changes = parse(UpdateStream, {"stream": "a/b", "retention": "consumed", **given}).changes
    assert Configuration("k").changed(changes).retention_policy == made


def test_a_stream_that_changes_its_retention_keeps_the_limits_that_are_still_used() -> None:
    aged = Configuration("k", retention="age", retain_min_age=60, retain_max_age=WEEK)
    consumed = aged.changed({"retention": "consumed"})
    assert (consumed.retain_min_age, consumed.retain_max_age) == (60, WEEK)
    assert consumed.changed({"retain_min_age": None}).retain_min_age is None, "not set again"
    assert consumed.changed({"retention": "keep"}).retention_policy == Policy()
    with raises("arguments_conflict retention keep retain_max_age"):
        consumed.changed({"retention": "keep", "retain_max_age": 60})
    with raises("arguments_conflict retention keep retain_max_age"):
        Configuration("k").changed({"retain_max_age": 60})
    with raises("argument_invalid retention"):
        Configuration("k").changed({"retention": "for ever"})
