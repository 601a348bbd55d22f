"""Draw a stream as SVG: its segments over the key space and time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape

WIDTH, HEIGHT = 1040, 600
LEFT, RIGHT, TOP, BOTTOM = 70, 24, 100, 88
COLOURS = ("#cfe3f5", "#d8efd3", "#fbe3c0", "#ead9f2", "#f6d3d5", "#d5eeee")  # by epoch, in turn
STEPS = (5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600)  # seconds between two marks on the axis


@dataclass(frozen=True)
class Segment:
    """A segment, with the columns of the view `weir.segments`."""

    name: str
    key_low: float
    key_high: float
    creation_epoch: int
    sealed_epoch: int | None
    events: int


@dataclass(frozen=True)
class Commit:
    """An append: when, its label, and per segment the offset after its events."""

    at: datetime
    label: str
    ends: Mapping[str, int]


def truncated(segment: Segment, head: Mapping[str, int | str], segments: Sequence[Segment]) -> int:
    """Return how many of the segment's events are before the head.

    `head`: the cut at which the stream begins now, such as {"0.0": 12, "5.1": "future"}.
    """
    offset = head.get(segment.name)
    if isinstance(offset, int):
        return offset
    # Not listed: all of it lies before the head if the stream goes on there in a newer segment.
    passed = any(
        other.name in head
        and other.creation_epoch > segment.creation_epoch
        and other.key_low < segment.key_high
        and other.key_high > segment.key_low
        for other in segments
    )
    return segment.events if offset is None and passed else 0


def draw(
    title: str,
    segments: Sequence[Segment],
    epochs: Mapping[int, datetime],
    head: Mapping[str, int | str],
    commits: Sequence[Commit],
    end: datetime,
) -> str:
    """Return the SVG. `epochs`: when each one began; `end`: the right edge of the picture."""
    plane = _Plane(min(epochs.values()), end)
    parts = [_text(LEFT, 30, title, size=18, weight="bold")]
    parts += _legend()
    for segment in segments:
        left = plane.x(epochs[segment.creation_epoch])
        sealed = segment.sealed_epoch
        right = plane.x(end if sealed is None else epochs[sealed])
        gone = truncated(segment, head, segments)
        parts += _segment(segment, left, right, gone, segment.name in head, commits, plane)
    for epoch, began in sorted(epochs.items()):
        at = plane.x(began)
        parts.append(
            f'<line x1="{at:.1f}" y1="{TOP - 22}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM + 6}" '
            'stroke="#b03030" stroke-width="1.5" stroke-dasharray="6 3"/>'
        )
        parts.append(_text(at + 4, TOP - 26, f"epoch {epoch}", fill="#b03030", weight="bold"))
    taken = LEFT - 10.0  # where the last label ended: they may not overlap
    for commit in sorted(commits, key=lambda c: c.at):
        at = plane.x(commit.at)
        if at > taken:
            parts.append(_text(at, TOP - 8, commit.label, anchor="middle", size=12))
            taken = at + 7.0 * len(commit.label)
    parts += _axes(segments, plane)
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13">\n'
        '<defs><pattern id="gone" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="8" stroke="#777" '
        'stroke-width="3"/></pattern></defs>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


@dataclass(frozen=True)
class _Plane:
    """The coordinates of times and keys in the picture."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return max((self.end - self.begin).total_seconds(), 1.0)

    def x_after(self, seconds: float) -> float:
        return LEFT + seconds / self.seconds * (WIDTH - LEFT - RIGHT)

    def x(self, at: datetime) -> float:
        return self.x_after((at - self.begin).total_seconds())

    def y(self, key: float) -> float:
        return HEIGHT - BOTTOM - key * (HEIGHT - TOP - BOTTOM)


def _segment(
    segment: Segment,
    left: float,
    right: float,
    gone: int,
    in_head: bool,
    commits: Sequence[Commit],
    plane: _Plane,
) -> list[str]:
    """Return a segment's box, from `left` to `right`; `gone`: how many of its events are
    truncated.
    """
    top, bottom = plane.y(segment.key_high), plane.y(segment.key_low)
    colour = COLOURS[segment.creation_epoch % len(COLOURS)]
    box = f'x="{left:.1f}" y="{top:.1f}" height="{bottom - top:.1f}"'
    parts = [f'<rect {box} width="{right - left:.1f}" fill="{colour}" stroke="#444"/>']
    if gone:
        below = [plane.x(c.at) + 6 for c in commits if c.ends.get(segment.name, gone + 1) <= gone]
        edge = max([*below, left + 6]) if in_head else right
        width = f'width="{edge - left:.1f}"'
        parts.append(f'<rect {box} {width} fill="white" fill-opacity="0.55"/>')
        parts.append(f'<rect {box} {width} fill="url(#gone)" fill-opacity="0.35"/>')
        if in_head:
            parts.append(_upright(edge, top, bottom, "#222", 4))
    parts += [
        _upright(plane.x(commit.at), top + 2, bottom - 2, "#2b5f8f", 2)
        for commit in commits
        if segment.name in commit.ends
    ]
    # The name lies on a white ground, because lines run below it.
    middle, label = (top + bottom) / 2 + 5, f"{segment.name}   {segment.events:,} events"
    wide = 8.0 * len(label) + 8
    parts.append(
        f'<rect x="{left + 12:.1f}" y="{middle - 15:.1f}" width="{wide:.0f}" height="20" rx="4" '
        'fill="white" fill-opacity="0.9"/>'
    )
    parts.append(_text(left + 18, middle, label, weight="bold"))
    return parts


def _axes(segments: Sequence[Segment], plane: _Plane) -> list[str]:
    keys = sorted({0.0, 1.0} | {k for s in segments for k in (s.key_low, s.key_high)})
    parts = [_text(LEFT - 8, plane.y(k) + 4, f"{k:.4g}", anchor="end", size=12) for k in keys]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="18" y="{middle}" transform="rotate(-90 18 {middle})" text-anchor="middle" '
        'fill="#333">key space (hash of the routing key)</text>'
    )
    line = HEIGHT - BOTTOM
    step = next((s for s in STEPS if plane.seconds / s <= 12), STEPS[-1])
    for second in range(0, int(plane.seconds) + 1, step):
        at, label = plane.x_after(second), f"{second // 60}:{second % 60:02}"
        parts.append(_upright(at, line, line + 6, "#333", 1))
        parts.append(_text(at, line + 22, label, anchor="middle", size=12))
    parts.append(
        _text((LEFT + WIDTH - RIGHT) / 2, line + 44,
              "time since the stream was created (minutes:seconds)", anchor="middle")
    )  # fmt: skip
    return parts


def _legend() -> list[str]:
    parts, left, line = [], LEFT, HEIGHT - 14
    marks = (
        (f'<rect x="{{x}}" y="{line - 12}" width="22" height="14" fill="url(#gone)" '
         'fill-opacity="0.5" stroke="#444"/>', "truncated: its files are deleted"),
        (f'<line x1="{{x}}" y1="{line - 5}" x2="{{r}}" y2="{line - 5}" stroke="#222" '
         'stroke-width="4"/>', "head: where the stream begins now"),
        (f'<line x1="{{x}}" y1="{line - 5}" x2="{{r}}" y2="{line - 5}" stroke="#2b5f8f" '
         'stroke-width="2"/>', "an append"),
        (f'<line x1="{{x}}" y1="{line - 5}" x2="{{r}}" y2="{line - 5}" stroke="#b03030" '
         'stroke-width="1.5" stroke-dasharray="6 3"/>', "an epoch begins"),
    )  # fmt: skip
    for mark, label in marks:
        parts.append(mark.format(x=left, r=left + 22))
        parts.append(_text(left + 28, line, label, size=12))
        left += 60 + 7 * len(label)
    return parts


def _upright(x: float, top: float, bottom: float, colour: str, width: int) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )


def _text(x: float, y: float, text: str, *, size: int = 13, anchor: str = "start",
          weight: str = "normal", fill: str = "#222") -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{fill}" xml:space="preserve">{escape(text)}</text>'
    )


def active(segments: Sequence[Segment], epoch: int) -> list[Segment]:
    """Return the segments of an epoch by key. Raises ValueError unless they tile the key space."""
    found = sorted(
        (s for s in segments
         if s.creation_epoch <= epoch and (s.sealed_epoch is None or s.sealed_epoch > epoch)),
        key=lambda s: s.key_low,
    )  # fmt: skip
    bounds = [0.0, *(s.key_high for s in found)]
    if bounds[-1] != 1.0 or [s.key_low for s in found] != bounds[:-1]:
        raise ValueError(f"the segments of epoch {epoch} do not tile the key space: {found}")
    return found
