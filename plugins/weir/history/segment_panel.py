"""Draw segments as rectangles over key space and time, coloured by rate. Pure.

A segment that is large enough is a rectangle of its own, with its name if there is room for it.
Smaller ones share the cells of a grid, each of which has the colour of the largest rate below it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from xml.etree.ElementTree import Element

from weir.history import svg
from weir.history.levels import Levels, say_rate
from weir.history.scene import HeadPart, Mark, Position, SegmentDrawn, SegmentPanel
from weir.history.time_axis import TimeAxis, say_time

LEAST_HIGH, LEAST_WIDE = 4.0, 2.0  # px: what is smaller shares the cells of the grid
CELL = 3.0  # px
MOST_TOOLTIPS = 600
MOST_LINES = 24  # changes that are drawn as lines across the key space; more are signs above it
MOST_SIGNS = 120  # ... and still more are ticks
_NAME_HIGH, _AMOUNT_HIGH = 14, 30  # px that a name needs, and a name with a number below it


class _Box(NamedTuple):
    left: float
    right: float
    top: float
    bottom: float

    @property
    def is_large(self) -> bool:
        return self.bottom - self.top >= LEAST_HIGH and self.right - self.left >= LEAST_WIDE


@dataclass(frozen=True)
class _Plane:
    """The key space from `top` (1) to `bottom` (0), over the times of the axis."""

    axis: TimeAxis
    top: float
    bottom: float

    def y(self, key: float) -> float:
        return self.bottom - key * (self.bottom - self.top)

    def box(self, segment: SegmentDrawn) -> _Box:
        end = self.axis.end if segment.end is None else segment.end
        return _Box(
            self.axis.x(segment.begin), self.axis.x(end),
            self.y(segment.key_high), self.y(segment.key_low),
        )  # fmt: skip


def draw_segments(
    root: Element, panel: SegmentPanel, axis: TimeAxis, top: float, bottom: float, levels: Levels
) -> None:
    """Draw a panel's segments between two heights, its changes above and its head over them."""
    plane = _Plane(axis, top, bottom)
    shown = [s for s in panel.segments if s.begin < axis.end and (s.end or axis.end) > axis.begin]
    boxes = [plane.box(one) for one in shown]
    _draw_grid(root, plane, shown, boxes, levels)
    large = [(one, box) for one, box in zip(shown, boxes, strict=True) if box.is_large]
    few = len(large) <= MOST_TOOLTIPS
    for segment, box in large:
        parent = svg.group(root, _tooltip(segment, levels)) if few else root
        _draw_own(parent, plane, segment, box, levels)
    _draw_head(root, plane, panel.head)
    for number, position in enumerate(panel.positions):
        _draw_position(root, plane, number, position)
    for segment, box in large:
        _draw_name(root, segment, box, levels)
    _draw_marks(root, plane, panel.marks)
    _draw_keys(root, plane)


def draw_mark(root: Element, x: float, y: float, kind: str) -> None:
    """Draw the sign of a change, whose lowest point is (x, y): a triangle, a diamond for a
    scale by the policy, a circle for a roll, a small hollow triangle for a recorded cut.
    """
    if kind == "scale":
        svg.path(root, f"M{x:.1f} {y:.1f}l-4 -8h8z", kind)
    elif kind == "policy":
        svg.path(root, f"M{x:.1f} {y:.1f}l-4 -4.5l4 -4.5l4 4.5z", kind)
    elif kind == "cut":
        svg.path(root, f"M{x:.1f} {y:.1f}l-3 -6h6z", f"{kind} hollow")
    else:
        svg.path(root, f"M{x:.1f} {y - 1:.1f}a3 3 0 1 1 .01 0z", f"{kind} hollow")


def _tooltip(segment: SegmentDrawn, levels: Levels) -> str:
    unit = levels.unit
    most = max((one.rate for one in segment.rates), default=0.0)
    ended = f"sealed {say_time(segment.end)}" if segment.end is not None else "active"
    return (
        f"{segment.name} [{segment.key_low:.6g}, {segment.key_high:.6g}): "
        f"created {say_time(segment.begin)} UTC, {ended}; {segment.amount:,} {unit}, "
        f"at most {say_rate(most)} {unit} per second"
    )


def _colours(
    segment: SegmentDrawn, axis: TimeAxis, levels: Levels
) -> list[tuple[float, float, int]]:
    """Return a segment's life as (left, right, colour), neighbours with one colour as one."""
    runs: list[tuple[float, float, int]] = []

    def add(left: float, right: float, colour: int) -> None:
        # What is too narrow to be seen is drawn with its neighbour, in the colour of the larger.
        if runs and (runs[-1][2] == colour or runs[-1][1] - runs[-1][0] < LEAST_WIDE):
            runs[-1] = (runs[-1][0], right, max(runs[-1][2], colour))
        elif right > left:
            runs.append((left, right, colour))

    box_end = axis.x(axis.end if segment.end is None else segment.end)
    reached = axis.x(segment.begin)
    for begin, end, rate in segment.rates:
        add(reached, axis.x(begin), 0)
        add(max(axis.x(begin), reached), axis.x(end), levels.of(rate))
        reached = max(axis.x(end), reached)
    add(reached, box_end, 0)
    return runs


def _draw_own(
    parent: Element, plane: _Plane, segment: SegmentDrawn, box: _Box, levels: Levels
) -> None:
    high = box.bottom - box.top
    for left, right, colour in _colours(segment, plane.axis, levels):
        svg.rect(parent, left, box.top, right - left, high, levels.kinds[colour])
    edge = "2" if high > 40 else "1" if high > 8 else "0.6"
    svg.rect(
        parent, box.left, box.top, box.right - box.left, high, "edge", **{"stroke-width": edge}
    )


def _draw_name(root: Element, segment: SegmentDrawn, box: _Box, levels: Levels) -> None:
    wide, high = box.right - box.left - 10, box.bottom - box.top
    if high < _NAME_HIGH or wide < svg.width_of(segment.name):
        return
    amount = f"{segment.amount:,} {levels.unit}"
    both = high >= _AMOUNT_HIGH and wide >= svg.width_of(amount)
    y = (box.top + box.bottom) / 2 + (-3 if both else 4)
    svg.text(root, box.left + 6, y, segment.name, "name bold")
    if both:
        svg.text(root, box.left + 6, y + 14, amount, "name")


def _draw_grid(
    root: Element, plane: _Plane, segments: Sequence[SegmentDrawn], boxes: Sequence[_Box],
    levels: Levels,
) -> None:  # fmt: skip
    """Draw the segments that are too small for rectangles of their own."""
    columns = int((plane.axis.right - plane.axis.left) / CELL) + 1
    cells: dict[int, bytearray] = {}  # by row; a colour plus 1, or 0 for none
    for segment, box in zip(segments, boxes, strict=True):
        if box.is_large:
            continue
        first = int((box.top - plane.top) / CELL)
        last = max(int((box.bottom - plane.top) / CELL - 1e-6), first)
        for left, right, colour in _colours(segment, plane.axis, levels) or [(*box[:2], 0)]:
            begin = int((left - plane.axis.left) / CELL)
            end = max(int((right - plane.axis.left) / CELL - 1e-6), begin)
            for row in range(first, last + 1):
                line = cells.setdefault(row, bytearray(columns))
                for column in range(begin, min(end, columns - 1) + 1):
                    line[column] = max(line[column], colour + 1)
    for colour, areas in sorted(_areas(cells).items()):
        parts = []
        for row, rows, begin, end in areas:
            x, y = plane.axis.left + begin * CELL, plane.top + row * CELL
            right = min(plane.axis.left + end * CELL, plane.axis.right)
            bottom = min(y + rows * CELL, plane.bottom)
            parts.append(f"M{x:.0f} {y:.0f}H{right:.0f}V{bottom:.0f}H{x:.0f}z")
        svg.path(root, "".join(parts), levels.kinds[colour])


def _areas(cells: dict[int, bytearray]) -> dict[int, list[tuple[int, int, int, int]]]:
    """Return (row, rows, first column, last column + 1) of equal cells, by colour."""
    found: dict[int, list[tuple[int, int, int, int]]] = {}
    above: dict[tuple[int, int, int], list[int]] = {}  # the areas that end in the row before
    for row in sorted(cells):
        here: dict[tuple[int, int, int], list[int]] = {}
        for begin, end, value in _equal(cells[row]):
            area = above.get((begin, end, value))
            if area is None or area[0] + area[1] != row:
                area = [row, 0, begin, end, value]
            area[1] += 1
            here[begin, end, value] = area
        for key, area in above.items():
            if here.get(key) is not area:
                found.setdefault(area[4] - 1, []).append((area[0], area[1], area[2], area[3]))
        above = here
    for area in above.values():
        found.setdefault(area[4] - 1, []).append((area[0], area[1], area[2], area[3]))
    return found


def _equal(row: bytearray) -> Iterable[tuple[int, int, int]]:
    begin = 0
    for i in range(1, len(row) + 1):
        if i == len(row) or row[i] != row[begin]:
            if row[begin]:
                yield begin, i, row[begin]
            begin = i


def _draw_head(root: Element, plane: _Plane, head: Sequence[HeadPart]) -> None:
    """Veil what is truncated, and draw the head as one line from key to key."""
    moved = [one for one in sorted(head) if plane.axis.x(one.clock) > plane.axis.left]
    for one in moved:
        x, top = plane.axis.x(one.clock), plane.y(one.key_high)
        high = plane.y(one.key_low) - top
        for kind in ({"kind": "veil"}, {"kind": "", "fill": "url(#truncated)"}):
            svg.rect(root, plane.axis.left, top, x - plane.axis.left, high, **kind)
    if moved:
        svg.path(root, _line(plane, head), "head")


def _draw_position(root: Element, plane: _Plane, number: int, position: Position) -> None:
    parent = svg.group(root, position.reader_group)
    for kind in ("halo", f"p{number % svg.LINES}"):
        svg.path(parent, _line(plane, position.parts), kind)


def _line(plane: _Plane, parts: Sequence[HeadPart]) -> str:
    """Return one line from key to key."""
    points = [
        f"{plane.axis.x(one.clock):.1f} {plane.y(key):.1f}"
        for one in sorted(parts)
        for key in (one.key_low, one.key_high)
    ]
    return "M" + "L".join(points)


def _draw_marks(root: Element, plane: _Plane, marks: Sequence[Mark]) -> None:
    """Draw each change above the segments: as a line through them, with its name, if there are
    few."""
    shown = [m for m in sorted(marks) if plane.axis.begin <= m.clock <= plane.axis.end]
    reached, columns = 0.0, set()
    for mark in shown:
        x = plane.axis.x(mark.clock)
        if (round(x), mark.kind) in columns:
            continue
        columns.add((round(x), mark.kind))
        if len(shown) > MOST_SIGNS:
            svg.rect(root, x - 0.5, plane.top - 9, 1, 7, mark.kind, **{"stroke-width": "0"})
            continue
        draw_mark(root, x, plane.top - 2, mark.kind)
        if len(shown) <= MOST_LINES and mark.kind != "cut":
            svg.line(root, x, plane.top - 2, x, plane.bottom, mark.kind)
            wide = svg.width_of(mark.label)
            if x + 7 > reached and x + 7 + wide < plane.axis.right + 16:
                svg.text(root, x + 7, plane.top - 4, mark.label, mark.kind)
                reached = x + 7 + wide + 10
            elif x - 7 - wide > reached:
                svg.text(root, x - 7, plane.top - 4, mark.label, mark.kind, anchor="end")
                reached = x + 10


def _draw_keys(root: Element, plane: _Plane) -> None:
    for i in range(5):
        y = plane.y(i / 4)
        svg.line(root, plane.axis.left - 5, y, plane.axis.left, y, "axis")
        svg.text(root, plane.axis.left - 8, y + 4, f"{i / 4:g}", "quiet", anchor="end")
    middle = (plane.top + plane.bottom) / 2
    label = svg.text(root, 0, 0, "key space (hash of the routing key)", "quiet", anchor="middle")
    label.set("transform", f"translate(20 {middle:.0f}) rotate(-90)")
