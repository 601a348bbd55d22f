"""Questions about what is not there, and questions that make no sense: the answer is a sentence."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from sqlalchemy import Connection, text

from tests.chance import random_for
from tests.conftest import TestDatabase
from tests.controller.driver import Driver
from tests.controller.model import as_json
from tests.crash.jobs import execute
from tests.raises import raises
from tests.sql.history import History
from tests.watching import count_statements
from tests.world import questions as queries
from tests.world.streams import Lane
from weir.controller.cuts import check_cut, load_cuts
from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound
from weir.model.names import stream_name
from weir.retention.capture import recorded_cut

NOBODY = stream_name("no/such")
THEN = datetime(2024, 1, 1, tzinfo=UTC)
QUESTIONS: dict[str, Callable[[Connection, Any], object]] = {
    "active_segments": lambda c, s: queries.active_segments(c, s),
    "active_segments at": lambda c, s: queries.active_segments(c, s, THEN),
    "epoch_at": lambda c, s: queries.epoch_at(c, s, THEN),
    "scale_metadata": lambda c, s: queries.scale_metadata(c, s, THEN, THEN),
    "successors": lambda c, s: queries.successors(c, s, "0.0"),
    "predecessors": lambda c, s: queries.predecessors(c, s, "0.0"),
    "segments_between": lambda c, s: queries.segments_between(c, s),
    "segments_between cuts": lambda c, s: queries.segments_between(c, s, {"0.0": 0}, {"0.0": 1}),
    "span": lambda c, s: queries.span(c, s, {"0.0": 0}),
    "size_till": lambda c, s: queries.size_till(c, s, {"0.0": 0}),
    "size_between": lambda c, s: queries.size_between(c, s, {"0.0": 0}, {"0.0": 1}),
    "stream_cut_at": lambda c, s: queries.stream_cut_at(c, s, THEN),
    "recorded_cut": lambda c, s: recorded_cut(c, s, THEN),
    "next_cut": lambda c, s: queries.next_cut(c, s, {"0.0": 0}, 1),
    "stream_info": lambda c, s: queries.stream_info(c, s),
}


def answer(database: Database, question: Callable[..., object], *given: object) -> object:
    """Ask a question in a transaction of its own."""
    return database.transaction(lambda c: question(c, *given))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_stream_that_is_not_there_is_said_not_to_be_there(
    histories: Database, question: str
) -> None:
    Lane.made(histories)
    with raises("stream_not_found no/such"):
        answer(histories, QUESTIONS[question], NOBODY)


def test_no_stream_is_found_in_a_database_that_is_known_to_be_empty(
    test_database: TestDatabase,
) -> None:
    """Postgres then reads tables without evaluating what they are filtered by."""
    execute(test_database.owner_dsn, "VACUUM ANALYZE")
    empty = test_database.open()
    silent = []
    for question, ask in QUESTIONS.items():
        try:
            answer(empty, ask, NOBODY)
        except NotFound:
            continue
        silent.append(question)
    empty.dispose()
    assert silent == []


@pytest.mark.parametrize("segment", ["7.0", "0.1", "9999.99999"])
def test_a_segment_that_is_not_there_is_named(histories: Database, segment: str) -> None:
    asked = History(Driver(histories, segments=2), random_for("wrong"))
    for question in (queries.successors, queries.predecessors):
        with raises(f"segment_not_found {segment}"):
            asked.ask(question, segment)


MALFORMED = ["", "0", "0.0.0", "00.0", "-1.0", "0.0 ", "a.b", "4294967296.0", "0.2147483648"]


@pytest.mark.parametrize("segment", MALFORMED)
def test_what_is_no_segments_name_is_refused(histories: Database, segment: str) -> None:
    asked = History(Driver(histories, segments=2), random_for("wrong"))
    for question in (queries.successors, queries.predecessors):
        with raises("name_invalid segment"):
            asked.ask(question, segment)


WITH_A_CUT: dict[str, Callable[[Connection, Any, queries.Cut], object]] = {
    "segments_between from": lambda c, s, cut: queries.segments_between(c, s, cut),
    "segments_between to": lambda c, s, cut: queries.segments_between(c, s, None, cut),
    "span": queries.span,
    "size_till": queries.size_till,
    "size_between from": lambda c, s, cut: queries.size_between(c, s, cut, {"0.0": 0, "1.0": 0}),
    "size_between to": lambda c, s, cut: queries.size_between(c, s, {"0.0": 0, "1.0": 0}, cut),
    "next_cut": lambda c, s, cut: queries.next_cut(c, s, cut, 1),
}


@pytest.mark.parametrize("question", WITH_A_CUT)
def test_a_cut_with_a_segment_that_is_not_there_is_refused_by_its_name(
    histories: Database, question: str
) -> None:
    lane = Lane.made(histories)
    cut: queries.Cut = {"0.0": 0, "7.3": 0}
    with raises("cut_invalid 7.3 because"):
        answer(histories, WITH_A_CUT[question], lane.name, cut)


@pytest.mark.parametrize("question", WITH_A_CUT)
@pytest.mark.parametrize(
    "cut",
    [
        {}, {"nonsense": 0}, {"0.0.0": 0, "1.0": 0}, {"4294967296.0": 0},
        {"0.0": -1, "1.0": 0}, {"0.0": 1.5, "1.0": 0}, {"0.0": "soon", "1.0": 0},
        {"0.0": None, "1.0": 0}, {"0.0": True, "1.0": 0}, {"0.0": 10**30, "1.0": 0},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_what_is_no_cut_is_refused(histories: Database, question: str, cut: queries.Cut) -> None:
    lane = Lane.made(histories)
    with raises("cut_invalid"):
        answer(histories, WITH_A_CUT[question], lane.name, cut)


def size_till(connection: Connection, stream: Any, cut: queries.Cut) -> object:
    """As people ask for it."""
    return connection.execute(
        text("SELECT * FROM size_till(:stream, CAST(:cut AS jsonb))"),
        {"stream": str(stream), "cut": json.dumps(cut)},
    ).one()


@pytest.mark.parametrize("question", WITH_A_CUT)
def test_a_cut_that_is_no_position_of_the_stream_is_refused_with_the_segment(
    histories: Database, question: str
) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 5, "1.0": 5})
    [low, high] = lane.scale("1.0")
    cuts: dict[str, queries.Cut] = {
        "cut_invalid 6 0.0 5": {"0.0": 6, "1.0": 0},
        "cut_invalid [0.5, 1) predecessors": {"0.0": 5},
        "cut_invalid [0, 0.5) predecessors": {low: 0, high: 0},
        f"cut_invalid {low} 1.0 future": {"0.0": 0, "1.0": 2, low: 0},
        f"cut_invalid {low} predecessor": {"0.0": 0, low: "future", high: 0},
    }
    asked = {**WITH_A_CUT, "size_till": size_till}[question]
    for said, cut in cuts.items():
        with raises(said):
            answer(histories, asked, lane.name, cut)


def test_the_rules_for_cuts_are_the_same_in_sql_and_in_python(history: History) -> None:
    lane, random = history.lane, random_for("rules")
    sizes = lane.sizes()
    frontiers = [as_json(cut) for cut in history.frontiers(40)]
    outcomes = set()
    for frontier in frontiers:
        cut: queries.Cut = dict(frontier)
        for _ in range(random.randint(0, 2)):  # changed here and there
            name = random.choice([*cut, *sizes])
            if random.random() < 0.4:
                cut.pop(name, None)
            else:
                others: list[int | str] = ["future", 0, sizes[name], sizes[name] + 1]
                cut[name] = random.choice(others)
        found = {is_refused(check, lane, cut) for check in (by_sql, by_python)}
        assert len(found) == 1, cut
        outcomes |= found
    assert outcomes == {True, False}


def is_refused(check: Callable[[Connection, int, Any], None], lane: Lane, cut: Any) -> bool:
    try:
        lane.database.transaction(lambda c: check(c, lane.stream_id, cut))
    except InvalidInput:
        return True
    return False


def by_sql(connection: Connection, stream_id: int, cut: queries.Cut) -> None:
    connection.execute(
        text("SELECT valid_cut(:s, CAST(:cut AS jsonb))"), {"s": stream_id, "cut": json.dumps(cut)}
    )


def by_python(connection: Connection, stream_id: int, cut: queries.Cut) -> None:
    check_cut(connection, stream_id, load_cuts(connection, stream_id, cut)[0])


def test_the_next_cut_is_asked_for_with_a_distance_from_a_place_that_is_there(
    histories: Database,
) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 5, "1.0": 5})
    for distance in (0, -1):
        with raises(f"argument_invalid {distance}"):
            answer(histories, queries.next_cut, lane.name, {"0.0": 0, "1.0": 0}, distance)
    lane.truncate("0.0=2, 1.0=3")
    with raises("events_truncated 0.0"):
        histories.transaction(lambda c: queries.next_cut(c, lane.name, {"0.0": 1, "1.0": 4}, 10))
    found = histories.transaction(lambda c: queries.next_cut(c, lane.name, {"0.0": 2, "1.0": 3}, 2))
    assert found == {"0.0": 3, "1.0": 4}


def test_cuts_in_the_wrong_order_are_refused_with_the_segment(histories: Database) -> None:
    lane = Lane.made(histories)
    lane.append({"0.0": 5, "1.0": 5})
    early: queries.Cut = {"0.0": 1, "1.0": 4}
    late: queries.Cut = {"0.0": 3, "1.0": 4}
    histories.transaction(lambda c: queries.segments_between(c, lane.name, early, late))
    with raises("position_invalid 0.0 earlier"):
        histories.transaction(lambda c: queries.segments_between(c, lane.name, late, early))
    size = histories.transaction(lambda c: queries.size_between(c, lane.name, late, early))
    assert size == (-2, -20)


def test_every_question_is_one_statement(history: History) -> None:
    cut, tail = as_json(history.model.head), as_json(history.model.tail())
    asked: list[tuple[Any, ...]] = [
        (queries.active_segments,), (queries.active_segments, THEN), (queries.epoch_at, THEN),
        (queries.scale_metadata, THEN, THEN), (queries.successors, "0.0"),
        (queries.predecessors, "0.0"), (queries.segments_between,),
        (queries.segments_between, cut, tail), (queries.span, cut), (queries.size_till, cut),
        (queries.size_between, cut, tail), (queries.stream_cut_at, THEN),
        (recorded_cut, THEN), (queries.next_cut, cut, 10), (queries.stream_info,),
    ]  # fmt: skip
    statements = count_statements(history.lane.database)
    for question, *given in asked:
        history.ask(question, *given)
    assert len(statements) == len(asked)
