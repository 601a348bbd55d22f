"""A stream as a picture: its segments over the key space and time, as SVG."""

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
    """A segment as the view `weir.segments` has it."""

    name: str
    key_low: float
    key_high: float
    creation_epoch: int
    sealed_epoch: int | None
    events: int


@dataclass(frozen=True)
class Commit:
    """One append: when, what it was, and per segment where its events ended."""

    at: datetime
    label: str
    ends: Mapping[str, int]


def truncated(segment: Segment, head: Mapping[str, int | str], segments: Sequence[Segment]) -> int:
    """How many of the segment's events lie before the head.

    `head`: the cut where the stream begins now, such as {"0.0": 12, "5.1": "future"}.
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
    """The SVG. `epochs`: when each began; `end`: the right edge of the picture."""
    begin = min(epochs.values())
    seconds = max((end - begin).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return LEFT + (at - begin).total_seconds() / seconds * (WIDTH - LEFT - RIGHT)

    def y(key: float) -> float:
        return HEIGHT - BOTTOM - key * (HEIGHT - TOP - BOTTOM)

    parts = [_text(LEFT, 30, title, size=18, weight="bold")]
    parts += _legend()
    for segment in segments:
        parts += _segment(segment, segments, epochs, head, commits, end, x, y)
    for epoch, at in sorted(epochs.items()):
        parts.append(
            f'<line x1="{x(at):.1f}" y1="{TOP - 22}" x2="{x(at):.1f}" y2="{HEIGHT - BOTTOM + 6}" '
            'stroke="#b03030" stroke-width="1.5" stroke-dasharray="6 3"/>'
        )
        parts.append(_text(x(at) + 4, TOP - 26, f"epoch {epoch}", fill="#b03030", weight="bold"))
    right = LEFT - 10.0  # where the last label ended: they may not overlap
    for commit in sorted(commits, key=lambda c: c.at):
        if x(commit.at) > right:
            parts.append(_text(x(commit.at), TOP - 8, commit.label, anchor="middle", size=12))
            right = x(commit.at) + 7.0 * len(commit.label)
    parts += _axes(segments, seconds, x_of=lambda s: LEFT + s / seconds * (WIDTH - LEFT - RIGHT),
                   y=y)  # fmt: skip
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" font-family="Helvetica, Arial, sans-serif" font-size="13">\n'
        '<defs><pattern id="gone" width="8" height="8" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="8" stroke="#777" '
        'stroke-width="3"/></pattern></defs>\n'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n{body}\n</svg>\n'
    )


def _segment(segment, segments, epochs, head, commits, end, x, y) -> list[str]:  # type: ignore[no-untyped-def]  # the arguments of draw
    left = x(epochs[segment.creation_epoch])
    right = x(end if segment.sealed_epoch is None else epochs[segment.sealed_epoch])
    top, height = y(segment.key_high), y(segment.key_low) - y(segment.key_high)
    colour = COLOURS[segment.creation_epoch % len(COLOURS)]
    box = f'x="{left:.1f}" y="{top:.1f}" height="{height:.1f}"'
    parts = [f'<rect {box} width="{right - left:.1f}" fill="{colour}" stroke="#444"/>']
    gone = truncated(segment, head, segments)
    if gone:
        below = [x(c.at) + 6 for c in commits if c.ends.get(segment.name, gone + 1) <= gone]
        whole = segment.name not in head
        edge = right if whole else max([*below, left + 6])
        width = edge - left
        parts.append(f'<rect {box} width="{width:.1f}" fill="white" fill-opacity="0.55"/>')
        parts.append(f'<rect {box} width="{width:.1f}" fill="url(#gone)" fill-opacity="0.35"/>')
        if not whole:
            parts.append(
                f'<line x1="{edge:.1f}" y1="{top:.1f}" x2="{edge:.1f}" y2="{top + height:.1f}" '
                'stroke="#222" stroke-width="4"/>'
            )
    for commit in commits:
        if segment.name in commit.ends:
            at = x(commit.at)
            parts.append(
                f'<line x1="{at:.1f}" y1="{top + 2:.1f}" x2="{at:.1f}" y2="{top + height - 2:.1f}" '
                'stroke="#2b5f8f" stroke-width="2"/>'
            )
    # The name lies on a white ground, because lines run below it.
    middle, label = top + height / 2 + 5, f"{segment.name}   {segment.events:,} events"
    wide = 8.0 * len(label) + 8
    parts.append(
        f'<rect x="{left + 12:.1f}" y="{middle - 15:.1f}" width="{wide:.0f}" height="20" rx="4" '
        'fill="white" fill-opacity="0.9"/>'
    )
    parts.append(_text(left + 18, middle, label, weight="bold"))
    return parts


def _axes(segments, seconds, x_of, y) -> list[str]:  # type: ignore[no-untyped-def]  # the scales of draw
    keys = sorted({0.0, 1.0} | {k for s in segments for k in (s.key_low, s.key_high)})
    parts = [_text(LEFT - 8, y(key) + 4, f"{key:.4g}", anchor="end", size=12) for key in keys]
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="18" y="{middle}" transform="rotate(-90 18 {middle})" text-anchor="middle" '
        'fill="#333">key space (hash of the routing key)</text>'
    )
    step = next((s for s in STEPS if seconds / s <= 12), STEPS[-1])
    for second in range(0, int(seconds) + 1, step):
        at = x_of(second)
        parts.append(
            f'<line x1="{at:.1f}" y1="{HEIGHT - BOTTOM}" x2="{at:.1f}" y2="{HEIGHT - BOTTOM + 6}" '
            'stroke="#333"/>'
        )
        parts.append(
            _text(at, HEIGHT - BOTTOM + 22, f"{second // 60}:{second % 60:02}", anchor="middle",
                  size=12)
        )  # fmt: skip
    parts.append(
        _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - BOTTOM + 44,
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


def _text(x: float, y: float, text: str, *, size: int = 13, anchor: str = "start",
          weight: str = "normal", fill: str = "#222") -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'font-weight="{weight}" fill="{fill}" xml:space="preserve">{escape(text)}</text>'
    )


def active(segments: Sequence[Segment], epoch: int) -> list[Segment]:
    """The segments of an epoch, in the order of their keys. Raises ValueError unless they tile."""
    found = sorted(
        (s for s in segments
         if s.creation_epoch <= epoch and (s.sealed_epoch is None or s.sealed_epoch > epoch)),
        key=lambda s: s.key_low,
    )  # fmt: skip
    bounds = [0.0, *(s.key_high for s in found)]
    if bounds[-1] != 1.0 or [s.key_low for s in found] != bounds[:-1]:
        raise ValueError(f"the segments of epoch {epoch} do not tile the key space: {found}")
    return found
