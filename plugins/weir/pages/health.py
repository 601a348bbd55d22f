"""How a stream is doing, in words: one line, the worst first."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

Level = Literal["bad", "warn", "good", "rest"]


class Health(BaseModel):
    """A line that says how something is, and since when, or when it happened or will."""

    level: Level
    words: str
    since: datetime | None = None
    at: datetime | None = None


class Lag(BaseModel):
    """How far a reader group is in a stream."""

    reader_group: str
    unread_events: int
    unread_bytes: int
    lost_events: int
    behind_since: datetime | None


class Alert(BaseModel):
    """What somebody should look at, of weir.retention_alerts."""

    reader_group: str
    alert: str
    at: datetime
    message: str


_ALERTS: dict[str, tuple[Level, str]] = {
    "lost": ("bad", "lost unread events"),
    "soon lost": ("warn", "will lose unread events"),
    "timed out": ("warn", "has timed out and holds nothing back"),
}


def health_of(
    state: str, events: int, damage: int, lags: Iterable[Lag], alerts: Iterable[Alert]
) -> Health:
    """Return how a stream is doing. `damage`: how much of it is not as recorded."""
    if damage:
        return Health(level="bad", words=_some(damage, "damaged file"))
    found = sorted(alerts, key=lambda one: (list(_ALERTS).index(one.alert), one.at))
    if found:
        level, words = _ALERTS[found[0].alert]
        more = f", and {_some(len(found) - 1, 'more alert')}" if found[1:] else ""
        return Health(level=level, words=f"{found[0].reader_group} {words}{more}", at=found[0].at)
    lags = list(lags)
    behind = [one for one in lags if one.behind_since is not None]
    if behind:
        last = min(behind, key=lambda one: one.behind_since or datetime.max)
        words = f"{last.reader_group} has {_some(last.unread_events, 'event')} to read"
        return Health(level="good", words=words, since=last.behind_since)
    if state == "sealed":
        return Health(level="rest", words="sealed" + (", and all is read" if lags else ""))
    if not events:
        return Health(level="rest", words="empty")
    return Health(level="good", words="all is read" if lags else "no group reads it")


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")
