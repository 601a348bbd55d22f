"""What a writer states without an append: up to which event time it has appended everything."""

import logging
from datetime import datetime

from sqlalchemy import Connection

from weir.controller.locks import LockedStream, no_such_stream, not_active
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import called
from weir.model.amounts import NONE
from weir.model.event_time import (
    NO_MORE,
    no_event_time,
    not_complete_yet,
    say_time,
    stated_until,
)
from weir.model.names import StreamName, check_text
from weir.queries.controller import completeness as sql

log = logging.getLogger("weir.transactions")


def state_completeness(
    database: Database, name: StreamName, writer_id: str, until: datetime | str | int
) -> None:
    """Record that a writer has appended everything before an event time, without an append.

    `until`: a datetime, a text, microseconds, or `done` if the writer appends nothing more. Changes
    nothing if the writer has stated a later time, or `done` (which is logged; semantics 16.4).
    Raises NotFound; Conflict if the stream is sealed; InvalidInput for what is not a time, for a
    stream without event time, and for a time that is later than now (`event_time_ahead`).
    """
    check_text("writer_id", writer_id)
    stated = until if isinstance(until, int) else stated_until(until)
    if stated is None:
        return
    outcome = database.transaction(
        lambda c: sql.state_completeness(
            c, scope=name.scope, name=name.name, writer_id=writer_id, until=stated
        )
    )
    if outcome == "no stream":
        raise no_such_stream(name)
    if outcome == "no event time":
        raise no_event_time(name)
    if outcome == "not yet":
        raise not_complete_yet(name, stated)
    if outcome == "done":
        log.warning(
            "writer %s has stated that it is done with stream %s, so %s changes nothing; an append "
            "of this writer that is committed from now on takes it back",
            writer_id, name, say_time(stated),
        )  # fmt: skip
    elif outcome != "stated":
        raise not_active(name, outcome)


def state_unmapped(
    database: Database, name: StreamName, task: str, count: int, until: datetime | str | int
) -> list[str]:
    """Record that the writers of a mapped task that its run does not have, because it maps only
    `count`, have appended everything before an event time; return them.

    `task`: `dag_id/task_id`; its writers are this, a slash and the index. Only those that have
    stated an earlier time count: nothing is ever taken back.
    """
    stated = until if isinstance(until, int) else stated_until(until)
    if stated is None:
        return []
    writers = database.transaction(
        lambda c: sql.state_unmapped(
            c, scope=name.scope, name=name.name, task=task, count=count, until=stated
        )
    )
    return writers or []


def take_back(connection: Connection, stream: LockedStream, given: str) -> list[str]:
    """Make a locked stream complete to an earlier event time than its writers have stated, or to
    `none`. Return sentences: what it was complete to, and what was announced.

    A writer that has stated a later time is taken to have stated this one. Raises InvalidInput for
    what is no earlier time.
    """
    until = None if given.strip() == NONE else stated_until(given)
    was = sql.complete_until(connection, stream_id=stream.stream_id)
    if until == NO_MORE or (until is not None and (was is None or until >= was)):
        to = "no time" if was is None else say_time(was)
        raise InvalidInput(
            "argument_invalid",
            f"{called('complete_until')} is {given}, but stream {stream.name} is complete to {to}; "
            "give an earlier time, or none, because an update only takes back what writers have "
            "stated.",
        )
    told = sql.take_back(connection, until=until, stream_id=stream.stream_id)
    to = "no time" if until is None else say_time(until)
    before = "no time" if was is None else say_time(was)
    return [f"stream {stream.name} is complete to {to}, no longer to {before}"] + [
        f"{one.kind} {'' if one.since is None else f'from {say_time(one.since)} '}up to "
        f"{say_time(one.until)} were announced to {one.airflow}; each is announced again once it "
        "is complete"
        for one in told
    ]
