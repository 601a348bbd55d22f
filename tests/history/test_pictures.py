"""Pictures of streams and groups: their numbers were true at each time."""

from xml.etree import ElementTree

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.history import pictures
from weir.history.pictures import picture_of, scene_of
from weir.history.scene import ChartPanel, SegmentPanel, Series
from weir.retention.capture import capture

SVG = "{http://www.w3.org/2000/svg}"


def at(series: Series, clock: int) -> float:
    """Return what a chart shows at a time."""
    return [value for since, value in series.points if since <= clock][-1]


@pytest.fixture(autouse=True)
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show each change by itself."""
    monkeypatch.setattr(pictures, "width_of_bin", lambda begin, end: 1)


@pytest.mark.parametrize("case", range(cases(16, least=2)))
def test_unread_events_were_so_many_at_each_time(database: Database, case: int) -> None:
    random = random_for("lag", case)
    lanes = [Lane.made(database, 2), Lane.made(database, 1)]
    lanes[0].append({"0.0": 7})
    group = Group.made(*lanes)
    reader = group.reader()
    was = []
    for _ in range(15):
        what = random.random()
        lane = random.choice(lanes)
        if what < 0.5:
            lane.append({one: random.randint(1, 20) for one in lane.active()})
        elif what < 0.6:
            lane.scale(random.choice(lane.active()), parts=2)
        elif batch := reader.open(random.randint(1, 30)):
            reader.commit(batch)
        rows = group.rows(
            "SELECT stream, unread_events, time_clock(clock_timestamp()) AS clock "
            "FROM weir.lag WHERE reader_group = :name",
            name=group.name,
        )
        was += [(row.stream, row.clock, row.unread_events) for row in rows]
    shown = scene_of(database, group.name)
    charts = {str(panel.heading).split()[3].rstrip(","): panel for panel in shown.panels}
    for stream, clock, unread in was:
        chart = charts[stream]
        assert isinstance(chart, ChartPanel)
        assert at(chart.series[0], clock) == unread


def test_what_is_kept_was_so_much_before_and_after_a_truncation(database: Database) -> None:
    lane = Lane.made(database, 2, retention="consumed")
    group = Group.made(lane, subscriber=True)
    kept = []

    def look() -> None:
        [row] = lane.rows(
            "SELECT bytes_retained AS bytes, time_clock(clock_timestamp()) AS clock "
            "FROM weir.streams WHERE stream_id = :s"
        )
        kept.append((row.clock, row.bytes))

    lane.append({"0.0": 10, "1.0": 20})
    look()
    reader = group.reader()
    reader.read_all()
    lane.truncate('{"0.0": 4, "1.0": 0}')
    look()
    lane.append({"0.0": 1})
    look()
    reader.read_all()
    group.checkpoint("read")
    capture(database)
    assert (
        "the next retention truncates 270" in scene_of(database, str(lane.name)).panels[1].heading
    )
    assert len(kept) == 3
    segments, chart = scene_of(database, str(lane.name)).panels
    assert isinstance(segments, SegmentPanel)
    assert isinstance(chart, ChartPanel)
    truncated, retained = chart.series
    for clock, amount in kept:
        assert at(retained, clock) == amount
    assert [at(truncated, clock) for clock, _ in kept] == [0, 40, 40]
    [position] = segments.positions
    assert position.reader_group == group.name
    assert {mark.kind for mark in segments.marks} == {"cut"}


def test_a_picture_has_a_line_and_a_name_for_each_group_and_no_script(database: Database) -> None:
    lane = Lane.made(database, 2)
    groups = [Group.made(lane) for _ in range(3)]
    lane.append({"0.0": 10, "1.0": 20})
    lane.scale("0.0", parts=2)
    root = ElementTree.fromstring(picture_of(database, str(lane.name)))  # noqa: S314
    kinds = [one.get("class") for one in root.iter(f"{SVG}path")]
    assert [one for one in kinds if one in ("p0", "p1", "p2")] == ["p0", "p1", "p2"]
    texts = [one.text for one in root.iter(f"{SVG}text")]
    assert {f"position of {one.name}" for one in groups} <= set(texts)
    assert not list(root.iter(f"{SVG}script"))


def test_a_stream_and_a_group_without_events_have_pictures(database: Database) -> None:
    lane = Lane.made(database, 1)
    group = Group.made(lane)
    for of in (str(lane.name), group.name):
        ElementTree.fromstring(picture_of(database, of))  # noqa: S314


@pytest.mark.parametrize(
    ("of", "code"),
    [
        ("no/such", "stream_not_found"), ("nobody", "group_not_found"),
        ("<b>/x", "stream_name_invalid"), ("<b>", "group_name_invalid"),
    ],
)  # fmt: skip
def test_what_is_not_there_has_no_picture(database: Database, of: str, code: str) -> None:
    with raises(code):
        picture_of(database, of)


def test_times_without_history_have_no_picture(database: Database) -> None:
    lane = Lane.made(database, 1)
    group = Group.made(lane)
    for of in (str(lane.name), group.name):
        with raises("no_history"):
            picture_of(database, of, until="2001-01-01")
