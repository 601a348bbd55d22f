"""Times along the width of a picture, and where its ticks lie. Pure."""

from dataclasses import dataclass
from datetime import UTC, datetime

from weir.model.clock import SECOND, clock_time

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
# The steps between ticks that people read without calculating, in seconds.
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(n * _MINUTE for n in (1, 2, 5, 10, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 5, 10)),
)
_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120)
_TICKS = 9  # at most


@dataclass(frozen=True)
class TimeAxis:
    """The times from `begin` to `end` (microseconds since 1970), drawn from `left` to `right`."""

    begin: int
    end: int
    left: float
    right: float

    def x(self, clock: float) -> float:
        """Return where a time lies; one beyond the ends lies at that end."""
        share = (clock - self.begin) / max(self.end - self.begin, 1)
        return self.left + min(max(share, 0.0), 1.0) * (self.right - self.left)

    def ticks(self) -> list[tuple[float, str]]:
        """Return round times as (x, label)."""
        moments, step = _moments(self.begin, self.end)
        labels, before = [], None
        for clock in moments:
            at = clock_time(clock)
            labels.append((self.x(clock), _label(at, before, step)))
            before = at
        return labels


def say_time(clock: int) -> str:
    """Return a time in words, in UTC to the second: 2026-03-01 10:05:00."""
    return f"{clock_time(clock):%Y-%m-%d %H:%M:%S}"


def _moments(begin: int, end: int) -> tuple[list[int], int]:
    """Return the times of ticks, and the seconds between two of them."""
    length = max((end - begin) / SECOND, 1.0)
    for step in _STEPS:
        if length / step <= _TICKS:
            first = -(-begin // (step * SECOND))
            return [i * step * SECOND for i in range(first, end // (step * SECOND) + 1)], step
    for months in _MONTHS:
        first = clock_time(begin).year * 12 + clock_time(begin).month - 1
        found, month = [], first - first % months
        while (clock := _clock_of(month)) <= end:
            if clock >= begin:
                found.append(clock)
            month += months
        if len(found) <= _TICKS:
            break
    return found, months * 30 * _DAY


def _clock_of(month: int) -> int:
    at = datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return int(at.timestamp()) * SECOND


def _label(at: datetime, before: datetime | None, step: int) -> str:
    """Return the label of a tick: the date only where it begins or changes."""
    day = f"{at.day} {at:%b}"
    if step >= 28 * _DAY:
        return f"{at:%Y}" if step >= 360 * _DAY else f"{at:%b %Y}"
    if step >= _DAY:
        return day if before is not None and before.year == at.year else f"{day} {at.year}"
    clock = f"{at:%H:%M:%S}" if step < _MINUTE else f"{at:%H:%M}"
    return clock if before is not None and before.date() == at.date() else f"{day} {clock}"
