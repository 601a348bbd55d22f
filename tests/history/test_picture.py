"""The picture of a stream: all segments are seen, names never break it, it stays small."""

import random
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weir.history.levels import levels_of
from weir.history.picture import draw
from weir.history.scene import (
    ChartPanel,
    HeadPart,
    Mark,
    Picture,
    Position,
    SegmentDrawn,
    SegmentPanel,
    Series,
    Slice,
)
from weir.history.slices import slices_of
from weir.history.time_axis import TimeAxis
from weir.model.clock import SECOND
from weir.model.segment_rates import Commit

BEGIN = 1_767_225_600 * SECOND  # 2026-01-01
HOUR, DAY = 3600 * SECOND, 86_400 * SECOND
SVG = "{http://www.w3.org/2000/svg}"


def segment(name: str, low: float, high: float, *, end: int | None = None) -> SegmentDrawn:
    """A segment that had ten events a second for an hour."""
    return SegmentDrawn(
        name, low, high, BEGIN, end, 36_000, (Slice(BEGIN, BEGIN + HOUR, 10.0),)
    )  # fmt: skip


def drawn(*panels: SegmentPanel | ChartPanel, title: str = "a/b") -> ElementTree.Element:
    """The root of a picture of two hours."""
    return ElementTree.fromstring(draw(Picture(title, BEGIN, BEGIN + 2 * HOUR, panels)))  # noqa: S314


def texts(root: ElementTree.Element) -> list[str]:
    """What is written in a picture."""
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_a_segment_is_a_rectangle_over_its_keys_and_its_life() -> None:
    root = drawn(SegmentPanel("p", [segment("0.0", 0.0, 0.5), segment("1.0", 0.5, 1.0)]))
    edges = [one for one in root.iter(f"{SVG}rect") if one.get("class") == "edge"]
    assert len(edges) == 2
    lower, upper = edges
    assert float(lower.get("y", 0)) == float(upper.get("y", 0)) + float(upper.get("height", 0))
    assert lower.get("height") == upper.get("height")
    [loaded, *_] = [r for r in root.iter(f"{SVG}rect") if r.get("class") == "cool6"]
    assert float(loaded.get("width", 0)) == pytest.approx(float(lower.get("width", 0)) / 2, abs=0.1)
    assert {"0.0", "1.0", "36,000 events"} <= set(texts(root))


@given(st.text(max_size=30))
def test_any_name_is_escaped(name: str) -> None:
    drawn(
        SegmentPanel(
            name,
            [segment(name, 0.0, 1.0)],
            [Mark(BEGIN + HOUR, "scale", name)],
            (),
            [Position(name, [HeadPart(0, 1, BEGIN)])],
        ),
        ChartPanel(name, [Series(name, [(BEGIN, 1.0)])], (name, 2.0)),
        title=name,
    )


def test_a_picture_says_what_it_shows_to_those_who_cannot_see_it() -> None:
    marks = [Mark(BEGIN + HOUR, "policy", "epoch 1"), Mark(BEGIN + HOUR, "roll", "epoch 2")]
    root = drawn(SegmentPanel("recorded", [segment("0.0", 0, 1)], marks), title="a/b")
    assert root.get("role") == "img"
    title, description = root.find(f"{SVG}title"), root.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert title.text == "a/b"
    assert "1 segment, of which 1 are active at the end, 1 scale, 1 roll." in str(description.text)


def many(live: int, rounds: int) -> list[SegmentDrawn]:
    """Segments of `rounds` generations, `live` at a time."""
    draws = random.Random(3)
    step = 2 * HOUR // rounds
    return [
        SegmentDrawn(
            f"s{i}.{g}", i / live, (i + 1) / live, BEGIN + g * step,
            None if g == rounds - 1 else BEGIN + (g + 1) * step, 1,
            (Slice(BEGIN + g * step, BEGIN + (g + 1) * step, draws.uniform(1, 1000)),),
        )
        for g in range(rounds)
        for i in range(live)
    ]  # fmt: skip


@pytest.mark.parametrize(("live", "rounds"), [(3000, 1), (300, 10), (50, 60), (3, 1000)])
def test_three_thousand_segments_are_drawn_without_names_and_in_less_than_a_megabyte(
    live: int, rounds: int
) -> None:
    segments = many(live, rounds)
    text = draw(Picture("many", BEGIN, BEGIN + 2 * HOUR, [SegmentPanel("all", segments)]))
    assert len(text) < 1_000_000
    assert not {one.name for one in segments} & set(texts(ElementTree.fromstring(text)))  # noqa: S314


def test_one_hot_segment_among_three_thousand_is_seen() -> None:
    cold = [segment(f"{i}.0", i / 3000, (i + 1) / 3000) for i in range(3000)]
    hot = cold[1234]._replace(rates=(Slice(BEGIN, BEGIN + SECOND, 99.0),))
    for segments, seen in ((cold, False), ([*cold[:1234], hot, *cold[1235:]], True)):
        picture = Picture("a", BEGIN, BEGIN + 2 * HOUR, [SegmentPanel("p", segments)], target=20.0)
        assert ('<path class="rate6"' in draw(picture)) == seen


def test_what_is_before_the_head_is_hatched() -> None:
    segments = [segment("0.0", 0.0, 0.5), segment("1.0", 0.5, 1.0)]
    head = [HeadPart(0.0, 0.5, BEGIN + HOUR), HeadPart(0.5, 1.0, BEGIN)]
    root = drawn(SegmentPanel("p", segments, head=head))
    hatched = [one for one in root.iter(f"{SVG}rect") if one.get("fill") == "url(#truncated)"]
    assert [one.get("height") for one in hatched] == ["170", "14"]  # half the keys, and the legend
    assert "head of the stream" in texts(root)
    untouched = drawn(SegmentPanel("p", segments, head=[HeadPart(0.0, 1.0, BEGIN)]))
    assert not [one for one in untouched.iter(f"{SVG}rect") if one.get("class") == "veil"]


@given(st.integers(1, 20 * 365 * DAY), st.integers(0, DAY))
def test_ticks_are_few_and_in_order_and_begin_with_a_date(length: int, shift: int) -> None:
    ticks = TimeAxis(BEGIN + shift, BEGIN + shift + length, 0.0, 900.0).ticks()
    assert len(ticks) <= 10
    assert ticks == sorted(ticks)
    assert len(ticks) >= (3 if length >= 4 * SECOND else 0)


@pytest.mark.parametrize(
    ("length", "labels"),
    [
        (30 * SECOND, ["1 Jan 00:00:00", "00:00:05", "00:00:10"]),
        (5 * HOUR, ["1 Jan 00:00", "01:00", "02:00"]),
        (2 * DAY, ["1 Jan 00:00", "06:00", "12:00"]),
        (8 * DAY, ["1 Jan 2026", "2 Jan", "3 Jan"]),
        (400 * DAY, ["Jan 2026", "Mar 2026", "May 2026"]),
        (3000 * DAY, ["2026", "2027", "2028"]),
    ],
)
def test_ticks_are_where_people_expect_them(length: int, labels: list[str]) -> None:
    ticks = TimeAxis(BEGIN, BEGIN + length, 0.0, 900.0).ticks()
    assert [label for _, label in ticks][:3] == labels


def test_colours_change_from_cool_to_warm_at_the_target() -> None:
    levels = levels_of([1.0, 5000.0], "events", target=100.0)
    assert [levels.of(rate) for rate in (0.0, 10.0, 99.0, 100.0, 250.0, 1e9)] == [0, 1, 3, 4, 5, 6]


def test_a_commit_is_spread_over_the_time_since_the_one_before_it() -> None:
    found = slices_of([Commit(BEGIN + HOUR, BEGIN, 36_000)], BEGIN, 600 * SECOND)
    assert [one.rate for one in found] == [pytest.approx(10.0)] * 6
    assert found[0].begin == BEGIN
    assert found[-1].end == BEGIN + HOUR


def test_what_came_after_the_end_does_not_change_the_rate_of_the_last_part() -> None:
    commits = [Commit(BEGIN + 90 * SECOND, BEGIN, 90), Commit(BEGIN + HOUR, BEGIN + 90 * SECOND, 9)]
    *_, last = slices_of(commits, BEGIN, 60 * SECOND, BEGIN + 80 * SECOND)
    assert (last.begin, last.end) == (BEGIN + 60 * SECOND, BEGIN + 80 * SECOND)
    assert last.rate == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(1, 10**7), st.integers(1, 1000)), min_size=1, max_size=20),
       st.integers(1, 10**7))  # fmt: skip
def test_slices_keep_every_event(steps: list[tuple[int, int]], width: int) -> None:
    commits, clock = [], BEGIN
    for step, amount in steps:
        commits.append(Commit(clock + step, clock, amount))
        clock += step
    found = slices_of(commits, BEGIN, max(width, (clock - BEGIN) // 200))
    total = sum(one.rate * (one.end - one.begin) / SECOND for one in found)
    assert total == pytest.approx(sum(amount for _, amount in steps))
