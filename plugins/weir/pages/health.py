"""How a stream or a reader group is doing, in words: one line, the worst first."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from weir.queries.pages.health import Alert, Lag

Level = Literal["bad", "warn", "good", "rest"]


class Health(BaseModel):
    """A line that says how something is, and since when, or when it happened or will."""

    level: Level
    words: str
    since: datetime | None = None
    at: datetime | None = None


_ALERTS: dict[str, tuple[Level, str]] = {
    "lost": ("bad", "lost unread events"),
    "soon lost": ("warn", "will lose unread events"),
    "timed out": ("warn", "has timed out and holds nothing back"),
}


def health_of(
    state: str,
    events: int,
    flaws: Mapping[str, int],
    lags: Iterable[Lag],
    alerts: Iterable[Alert],
) -> Health:
    """Return how a stream is doing. `flaws`: how many of each kind it has."""
    if flaws:
        words = ", ".join(_some(number, flaw) for flaw, number in flaws.items())
        return Health(level="bad", words=words)
    if found := _alarmed(alerts, "{group} "):
        return found
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


def health_of_group(
    readers: int, at_end: bool, lags: Iterable[Lag], alerts: Iterable[Alert]
) -> Health:
    """Return how a reader group is doing. `at_end`: whether it has read all that it ever will."""
    if found := _alarmed(alerts, ""):
        return found
    behind = [one for one in lags if one.behind_since is not None]
    if behind:
        since = min(one.behind_since for one in behind if one.behind_since)
        words = f"{_some(sum(one.unread_events for one in behind), 'event')} to read"
        return Health(level="good", words=words + ("" if readers else ", no reader"), since=since)
    if at_end:
        return Health(level="rest", words="at its end")
    return Health(level="good", words="all is read")


def _alarmed(alerts: Iterable[Alert], subject: str) -> Health | None:
    """Return the worst of the alerts, and how many there are beside it; None if there are none."""
    found = sorted(alerts, key=lambda one: (list(_ALERTS).index(one.alert), one.at))
    if not found:
        return None
    level, words = _ALERTS[found[0].alert]
    more = f", and {_some(len(found) - 1, 'more alert')}" if found[1:] else ""
    who = subject.format(group=found[0].reader_group)
    return Health(level=level, words=f"{who}{words}{more}", at=found[0].at)


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")
