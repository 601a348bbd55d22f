"""Say what a change of groups, or of the retention of a stream, releases at once, and refuse it if
other groups would lose unread events by that (semantics 11.9)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection

from weir.controller.locks import LockedStream
from weir.errors import Conflict, counted
from weir.front_ends import give
from weir.queries.reader_groups.groups import releases as sql
from weir.queries.reader_groups.groups.releases import Released


@contextmanager
def releasing(
    connection: Connection, streams: Sequence[LockedStream], group: str, allow_loss: bool
) -> Iterator[list[str]]:
    """Compare what retention may delete of locked streams before and after a change of a group, in
    the transaction that makes it. Yields a list, which has lines to show once the change is made.

    Raises Conflict if other groups would lose unread events by the change, unless `allow_loss`.
    """
    lines: list[str] = []
    asked = [s for s in streams if s.state == "active" and s.configuration.retention == "consumed"]
    before = released(connection, asked, group)
    yield lines
    after = released(connection, asked, group)
    for stream in asked:
        was, now = before[stream.stream_id], after[stream.stream_id]
        name, more = str(stream.name), max(now.events - was.events, 0)
        lost = more_lost(was, now) if more else {}  # what was released before, nobody loses by this
        if lost and not allow_loss:
            raise would_lose(
                f"reader group {group} would release {counted(more, 'event')} of {name} at once",
                lost,
                "let these read first, make them subscribers, or choose an earlier position",
            )  # fmt: skip
        lines.append(stream.configuration.retention_policy.said_of(name))
        if now.passed:
            much = f"{counted(more, 'event')} at once" if more else "nothing more"
            lines.append(
                f"reader group {group} is past {counted(now.passed, 'event')} of {name}; that "
                f"releases {much}"
            )
        elif now.passed == 0:
            lines.append(f"reader group {group} is at the head of {name}, and releases nothing yet")
        elif more:
            lines.append(f"that releases {counted(more, 'event')} of {name} at once")
        lines += said_of_groups(name, lost, now)


def released(
    connection: Connection, streams: Sequence[LockedStream], group: str = ""
) -> dict[int, Released]:
    """Return by stream id what retention may delete of locked streams sooner or later, as things
    are: how many `events`, how many of these each group has `lost` unread, how many events each
    group that is no subscriber is `behind`, and how many `group` has `passed`."""
    if not streams:
        return {}
    rows = sql.released(connection, ids=sorted(s.stream_id for s in streams), group=group)
    return {row.stream_id: row for row in rows}


def more_lost(before: Released, after: Released) -> dict[str, int]:
    """Return by group how many more unread events it would lose."""
    more = {name: events - before.lost.get(name, 0) for name, events in after.lost.items()}
    return {name: events for name, events in sorted(more.items()) if events > 0}


def would_lose(what: str, lost: Mapping[str, int], advice: str) -> Conflict:
    """Return the error for a change by which groups would lose unread events."""
    return Conflict(
        "would_lose_data",
        f"{what}, and by that reader groups would lose unread events ({_each(lost)}); {advice}, "
        f"or {give(allow_loss=True)}.",
    )


def said_of_groups(stream: str, lost: Mapping[str, int], after: Released) -> list[str]:
    """Return a line for each group that loses events, and for each for which nothing waits."""
    lines = [f"reader group {name} loses {events:,} unread events of {stream} by that"
             for name, events in lost.items()]  # fmt: skip
    for name, events in sorted(after.behind.items()):
        if name not in lost:
            lines.append(
                f"reader group {name} is no subscriber, so nothing waits for its {events:,} unread "
                f"events of {stream}"
            )
    return lines


def _each(events: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n:,}" for name, n in events.items())
