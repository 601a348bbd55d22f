"""The functions over cuts, on random histories, beside the same questions answered in Python."""

import json
from random import Random

import pytest

from tests.chance import cases, random_for
from tests.controller.driver import Driver
from tests.controller.model import GRID, Cut, as_json
from tests.raises import raises
from tests.sql.history import live
from tests.world.streams import Lane, database_of_file
from weir.database.connection import Database
from weir.model.segment import Segment, parse_segment_name, segment_name
from weir.model.stream_cut import FUTURE, StreamCut, first_behind, join, meet

database = database_of_file


def history(database: Database, case: int) -> tuple[Driver, Random]:
    """A stream to which all kinds of things have happened, and random numbers."""
    return live(database, case), random_for("functions", case)


def some_cuts(driver: Driver, random: Random, count: int) -> list[Cut]:
    start: Cut = dict.fromkeys(driver.model.epochs[0], 0)
    return [driver.model.frontier(random, start) for _ in range(count)]


def cut_of(driver: Driver, cut: Cut) -> StreamCut:
    segments = driver.model.segments
    return StreamCut(
        {
            Segment(s, segments[s].low / GRID, segments[s].high / GRID): FUTURE if o is None else o
            for s, o in cut.items()
        }
    )


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(6)))
def test_join_cuts_is_the_join_of_the_cuts(database: Database, case: int) -> None:
    driver, random = history(database, case)
    for _ in range(15):
        a, b = some_cuts(driver, random, 2)
        joined = driver.lane.value(
            "SELECT join_cuts(:s, CAST(:a AS jsonb), CAST(:b AS jsonb))",
            a=json.dumps(as_json(a)),
            b=json.dumps(as_json(b)),
        )
        ids = {s: Segment(s, x.low / GRID, x.high / GRID) for s, x in driver.model.segments.items()}
        assert StreamCut.from_json(joined, ids) == join(cut_of(driver, a), cut_of(driver, b))


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(6)))
def test_meet_and_order_are_those_of_the_library(database: Database, case: int) -> None:
    driver, random = history(database, case)
    ids = {s: Segment(s, x.low / GRID, x.high / GRID) for s, x in driver.model.segments.items()}
    for _ in range(15):
        cuts = some_cuts(driver, random, 3)
        a, b = cuts[0], random.choice([cuts[1], driver.model.frontier(random, cuts[0])])
        [found] = driver.lane.rows(
            """SELECT meet_cuts(:s, CAST(:cuts AS jsonb[])) AS met,
            first_behind(:s, CAST(:a AS jsonb), CAST(:b AS jsonb)) AS behind""",
            cuts=[json.dumps(as_json(cut)) for cut in cuts],
            a=json.dumps(as_json(a)),
            b=json.dumps(as_json(b)),
        )
        values = [cut_of(driver, cut) for cut in cuts]
        assert StreamCut.from_json(found.met, ids) == meet(values)
        behind = first_behind(cut_of(driver, a), cut_of(driver, b))
        assert found.behind == (behind.segment_id if behind else None)


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(6)))
def test_clock_after_is_the_clock_of_the_oldest_unread_event(database: Database, case: int) -> None:
    driver, random = history(database, case)
    entries = driver.lane.rows("SELECT * FROM time_index WHERE stream_id = :s")
    tail = driver.model.tail()
    for cut in [*some_cuts(driver, random, 15), tail]:
        left = driver.model.unpassed(cut)
        unread = [
            i.clock
            for i in entries
            if i.segment_id in left and i.start_offset + i.events > (cut.get(i.segment_id) or 0)
        ]
        found = driver.lane.value(
            "SELECT clock_after(:s, CAST(:cut AS jsonb))", cut=json.dumps(as_json(cut))
        )
        assert found == min(unread, default=None)


def test_bytes_before_an_offset_lie_within_a_commit_in_proportion(database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 3})
    lane.append({"0.0": [2, 4]})
    found = [
        lane.value("SELECT bytes_before(:s, 0, :offset)", offset=offset) for offset in range(12)
    ]
    assert found == [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 90, 90]


@pytest.mark.parametrize("name", ["0.0", "5.1", "4294967295.2147483647"])
def test_names_and_ids_are_those_of_the_library(database: Database, name: str) -> None:
    lane = Lane.made(database)
    segment_id = parse_segment_name(name)
    found = lane.rows("SELECT segment_id(:name), segment_name(:id)", name=name, id=segment_id)
    assert tuple(found[0]) == (segment_id, segment_name(segment_id))


def test_clocks_are_microseconds(database: Database) -> None:
    lane = Lane.made(database)
    clock = 1_700_000_000_123_456
    assert lane.value("SELECT time_clock(clock_time(:c))", c=clock) == clock
    shown = lane.value("SELECT clock_time(:c)::text", c=clock)
    assert shown == "2023-11-14 22:13:20.123456+00"


def test_an_infinite_time_lies_before_or_after_all_others(database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 3})
    name = str(lane.name)
    for end, cut in (("-infinity", {"0.0": 0, "1.0": 0}), ("infinity", {"0.0": 3, "1.0": 0})):
        assert lane.value("SELECT stream_cut_at(:n, CAST(:t AS timestamptz))", n=name, t=end) == cut
        assert lane.rows(
            "SELECT * FROM active_segments(:n, CAST(:t AS timestamptz))", n=name, t=end
        )
    assert lane.value("SELECT time_clock(NULL)") is None


def test_a_name_with_more_than_two_parts_is_no_stream(database: Database) -> None:
    lane = Lane.made(database)
    for wrong in (f"{lane.name}/more", f"{lane.name}/", lane.name.scope):
        with raises("stream_not_found"):
            lane.rows("SELECT stream_id(:n)", n=wrong)
