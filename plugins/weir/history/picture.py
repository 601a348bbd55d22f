"""Draw the history of a stream as SVG: its segments over the key space and time. Pure.

Times are microseconds since 1970. A picture has one time axis and any number of panels above it:
segments as rectangles coloured by rate, and charts of numbers over time.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple
from xml.etree.ElementTree import Element

from weir.errors import counted
from weir.history import svg
from weir.history.chart_panel import draw_chart
from weir.history.levels import Levels, levels_of, say_rate
from weir.history.scene import ChartPanel, Picture, SegmentPanel
from weir.history.segment_panel import draw_mark, draw_segments
from weir.history.time_axis import TimeAxis, say_time

WIDTH, LEFT, RIGHT = 1000, 72, 22
TOP, HEADING, STRIP, GAP, BELOW = 44, 22, 16, 22, 48
SEGMENTS_HIGH, CHART_HIGH = 340, 130
_ROW, _SWATCH = 20, 18
MARKS = {
    "policy": "scale by the policy",
    "scale": "scale by hand",
    "roll": "roll (no change of the key ranges)",
    "cut": "recorded cut",
}


def draw(picture: Picture) -> str:
    """Return the picture as SVG text."""
    end = max(picture.end, picture.begin + 1)
    axis = TimeAxis(picture.begin, end, LEFT, WIDTH - RIGHT)
    segments = [p for p in picture.panels if isinstance(p, SegmentPanel)]
    rates = [s.rate for panel in segments for one in panel.segments for s in one.rates]
    levels = levels_of(rates, picture.unit, picture.target)
    bottom = TOP + sum(_height(panel) for panel in picture.panels) - GAP
    legend = _legend(levels, segments, picture) if segments else []
    rows = _rows(legend)
    height = bottom + BELOW + _ROW * len(rows) + 8
    root = svg.document(WIDTH, height, picture.title, _description(picture))
    svg.text(root, LEFT, 27, picture.title, "title")
    y = float(TOP)
    for panel in picture.panels:
        if isinstance(panel, SegmentPanel):
            svg.text(root, LEFT, y + 12, panel.heading, "heading")
            top = y + HEADING + STRIP
            draw_segments(root, panel, axis, top, top + SEGMENTS_HIGH, levels)
        else:
            top = y + HEADING
            draw_chart(root, panel, axis, y, top, top + CHART_HIGH)
        y += _height(panel)
    _time_labels(root, axis, bottom)
    _draw_legend(root, rows, bottom + BELOW)
    return svg.written(root)


def _height(panel: SegmentPanel | ChartPanel) -> int:
    if isinstance(panel, SegmentPanel):
        return HEADING + STRIP + SEGMENTS_HIGH + GAP
    return HEADING + CHART_HIGH + GAP


def _description(picture: Picture) -> str:
    sentences = [f"From {say_time(picture.begin)} to {say_time(picture.end)} UTC."]
    for panel in picture.panels:
        if isinstance(panel, SegmentPanel):
            kinds = Counter(mark.kind for mark in panel.marks)
            sentences.append(
                f"{panel.heading}: {counted(len(panel.segments), 'segment')}, of which "
                f"{sum(one.end is None for one in panel.segments)} are active at the end, "
                f"{counted(kinds['scale'] + kinds['policy'], 'scale')}, "
                f"{counted(kinds['roll'], 'roll')}."
            )
        else:
            most = [
                f"{one.name} at most {say_rate(max((v for _, v in one.points), default=0))}"
                for one in panel.series
            ]
            sentences.append(f"{panel.heading}: {', '.join(most)}.")
    return " ".join(sentences)


def _time_labels(root: Element, axis: TimeAxis, bottom: float) -> None:
    """Draw the time axis below the last panel; a label that would touch another is left out."""
    svg.line(root, axis.left, bottom, axis.right, bottom, "axis")
    reached = 0.0
    for x, label in axis.ticks():
        svg.line(root, x, bottom, x, bottom + 5, "axis")
        half = svg.width_of(label) / 2
        x = min(max(x, half + 4), WIDTH - half - 4)
        if x - half > reached:
            svg.text(root, x, bottom + 18, label, anchor="middle")
            reached = x + half + 8
    svg.text(
        root, (axis.left + axis.right) / 2, bottom + 36, "time (UTC)", "quiet", anchor="middle"
    )


class _Entry(NamedTuple):
    """An entry of the legend: a colour of rates, or the name of a mark."""

    kind: str
    label: str

    @property
    def width(self) -> float:
        return (_SWATCH + 6 if self.kind else 0) + svg.width_of(self.label) + 18


def _legend(levels: Levels, panels: Sequence[SegmentPanel], picture: Picture) -> list[list[_Entry]]:
    """Return the entries in blocks, each of which begins a row."""
    heading = f"{levels.unit}/s of a segment"
    if picture.target:
        heading += f" (target {say_rate(picture.target)})"
    kinds = {mark.kind for panel in panels for mark in panel.marks}
    marks = [_Entry(kind, label) for kind, label in MARKS.items() if kind in kinds]
    if any(part.clock > picture.begin for panel in panels for part in panel.head):
        marks += [_Entry("head", "head of the stream"), _Entry("truncated", "truncated")]
    positions = [
        _Entry(f"p{number % svg.LINES}", f"position of {one.reader_group}")
        for panel in panels
        for number, one in enumerate(panel.positions)
    ]
    return [
        [_Entry("", heading + ":"), *(_Entry(kind, label) for kind, label in levels.legend())],
        *([marks] if marks else []),
        *([positions] if positions else []),
    ]


def _rows(blocks: Sequence[Sequence[_Entry]]) -> list[list[_Entry]]:
    rows: list[list[_Entry]] = []
    for block in blocks:
        rows.append([])
        for entry in block:
            if sum(one.width for one in rows[-1]) + entry.width > WIDTH - LEFT:
                rows.append([])
            rows[-1].append(entry)
    return rows


def _draw_legend(root: Element, rows: Sequence[Sequence[_Entry]], top: float) -> None:
    for number, row in enumerate(rows):
        x, y = float(LEFT), top + _ROW * number + 14
        for entry in row:
            if entry.kind in MARKS:
                draw_mark(root, x + _SWATCH / 2, y - 1, entry.kind)
            elif entry.kind == "head" or entry.kind.startswith("p"):
                svg.line(root, x, y - 4, x + _SWATCH, y - 4, entry.kind)
            elif entry.kind == "truncated":
                svg.rect(root, x, y - 11, _SWATCH, 14, "", fill="url(#truncated)")
            elif entry.kind:
                svg.rect(root, x, y - 11, _SWATCH, 14, entry.kind)
            svg.text(root, x + (_SWATCH + 6 if entry.kind else 0), y, entry.label, "quiet")
            x += entry.width
