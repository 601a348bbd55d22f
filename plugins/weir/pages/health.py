"""How a stream or a reader group is doing, in words: one line, the worst first."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

from pydantic import BaseModel

from weir.queries.pages.health import Lag, Trouble

Level = Literal["bad", "warn", "good", "rest"]


class Health(BaseModel):
    """A line that says how something is, and since when, or when it happened or will."""

    level: Level
    words: str
    since: datetime | None = None
    at: datetime | None = None


_LEVELS: dict[str, Level] = {"red": "bad", "amber": "warn"}


def health_of(
    state: str,
    events: int,
    lags: Iterable[Lag],
    troubles: Iterable[Trouble],
) -> Health:
    """Return how a stream is doing. `troubles`: those of the groups that read it, too."""
    if found := _troubled(troubles, "{group}: "):
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
    readers: int, at_end: bool, lags: Iterable[Lag], troubles: Iterable[Trouble]
) -> Health:
    """Return how a reader group is doing. `at_end`: whether it has read all that it ever will."""
    if found := _troubled(troubles, ""):
        return found
    behind = [one for one in lags if one.behind_since is not None]
    if behind:
        since = min(one.behind_since for one in behind if one.behind_since)
        words = f"{_some(sum(one.unread_events for one in behind), 'event')} to read"
        return Health(level="good", words=words + ("" if readers else ", no reader"), since=since)
    if at_end:
        return Health(level="rest", words="at its end")
    return Health(level="good", words="all is read")


def _troubled(troubles: Iterable[Trouble], subject: str) -> Health | None:
    """Return the worst of what is wrong, and how much there is beside it; None if nothing is."""
    found = sorted(troubles, key=lambda one: list(_LEVELS).index(one.severity))
    if not found:
        return None
    worst, more = found[0], f", and {len(found) - 1} more" if found[1:] else ""
    who = subject.format(group=worst.reader_group) if worst.reader_group else ""
    return Health(level=_LEVELS[worst.severity], words=f"{who}{worst.words}{more}", at=worst.since)


def _some(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("s" if number != 1 else "")
