"""Draw numbers over time as lines with steps. Pure."""

from collections.abc import Callable, Sequence
from xml.etree.ElementTree import Element

from weir.history import svg
from weir.history.levels import say_rate
from weir.history.scene import ChartPanel
from weir.history.time_axis import TimeAxis

LINES = 4  # across a chart, besides the one at 0


def draw_chart(
    root: Element, panel: ChartPanel, axis: TimeAxis, y: float, top: float, bottom: float
) -> None:
    """Draw numbers over time between two heights, with their names at the height `y`."""
    svg.text(root, axis.left, y + 12, panel.heading, "heading")
    x = axis.right
    for i, one in reversed(list(enumerate(panel.series))):
        x -= svg.width_of(one.name)
        svg.text(root, x, y + 12, one.name, "quiet")
        svg.line(root, x - 28, y + 8, x - 6, y + 8, _stroke(panel, i))
        x -= 46
    values = [value for one in panel.series for _, value in one.points]
    largest = max([*values, panel.limit[1] if panel.limit else 0.0])
    step = _nice_step(largest if largest > 0 else 1.0)
    most = step * LINES

    def y_of(value: float) -> float:
        return bottom - min(value / most, 1.0) * (bottom - top)

    for i in range(LINES + 1):
        svg.line(root, axis.left, y_of(i * step), axis.right, y_of(i * step), "grid")
        svg.text(root, axis.left - 8, y_of(i * step) + 4, say_rate(i * step), "quiet", anchor="end")
    if panel.limit:
        name, limit = panel.limit
        svg.line(root, axis.left, y_of(limit), axis.right, y_of(limit), "limit")
        svg.text(root, axis.left + 4, y_of(limit) - 4, name, "name")
    for i, one in enumerate(panel.series):
        if one.points:
            svg.path(root, _steps(one.points, axis, y_of), _stroke(panel, i))


def _steps(
    points: Sequence[tuple[int, float]], axis: TimeAxis, y_of: Callable[[float], float]
) -> str:
    """Return the line of a number that keeps each value until the next: several changes within a
    pixel are drawn as their least and their largest value."""
    (clock, value), columns = points[0], {}  # type: ignore[var-annotated]
    parts = [f"M{axis.x(clock):.1f} {y_of(value):.1f}"]
    for clock, value in points[1:]:
        columns.setdefault(round(axis.x(clock)), []).append(value)
    for x, values in columns.items():
        parts.append(f"H{x}")
        ends = (min(values), max(values), values[-1]) if len(values) > 1 else values
        parts.extend(f"V{y_of(value):.1f}" for value in ends)
    return "".join([*parts, f"H{axis.right:.1f}"])


def _nice_step(most: float) -> float:
    """Return a round step of which `LINES` reach `most`."""
    size = 1.0
    while size * 10 <= most / LINES:
        size *= 10
    while size > most / LINES:
        size /= 10
    return next(size * n for n in (1, 2, 2.5, 5, 10) if size * n * LINES >= most)


def _stroke(panel: ChartPanel, i: int) -> str:
    return "first" if i < len(panel.series) - 1 else "second"
