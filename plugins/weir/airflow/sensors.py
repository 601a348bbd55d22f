"""Sensors that wait for streams, reader groups and adjunct stores. They look once in the worker,
and then wait in the triggerer, where one statement asks for all of them."""

import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk.bases.sensor import BaseSensorOperator
from sqlalchemy import Connection

from weir.airflow.tasks import failing
from weir.airflow.waiting import ConditionTrigger, answered
from weir.controller.locks import no_such_stream
from weir.controller.times import parse_time
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import speaking
from weir.model.clock import EPOCH
from weir.model.event_time import no_event_time
from weir.model.names import reader_group_name, stream_name
from weir.operations.jobs import FORMS
from weir.reader_groups.locks import lock_group_and_streams, no_such_group
from weir.reader_groups.progress import Condition, aim_of, progress_of
from weir.reader_groups.starting_points import find_cuts, time_of
from weir.settings import load


class WeirSensor(BaseSensorOperator):
    """Wait for a condition: the base of Weir's sensors.

    Its arguments are templated. `timeout`, `soft_fail` and whatever else Airflow gives to sensors
    mean what they mean there; it never holds a slot while it waits.
    """

    def condition(self, database: Database) -> Condition:
        """Return what it waits for. Raises NotFound and InvalidInput for what can't come about."""
        raise NotImplementedError

    def execute(self, context: object) -> None:
        """Look once, and wait in the triggerer if it is not so yet."""
        with speaking("dag", FORMS), failing(), Database.of(load()) as database:
            waited_for = self.condition(database)
            answer = answered(database, [waited_for]).get(waited_for)
        if answer is None:
            self.defer(
                trigger=ConditionTrigger(**asdict(waited_for)),
                method_name="resume",
                timeout=timedelta(seconds=self.timeout),
            )
        else:
            self.resume(context, answer)

    def resume(self, _context: object, event: str) -> None:
        """End the task. Raises AirflowFailException if what it waits for was deleted."""
        if event != "met":
            raise AirflowFailException(
                "what this sensor waits for was deleted; look at weir.streams and "
                "weir.reader_groups, and clear the task once it is there again."
            )


class GroupSensor(WeirSensor):
    """Wait for a reader group: until it has read up to a place, or has so many unread events.

    :param reader_group: the group.
    :param up_to: a time (everything that was committed before it is read), or any other starting
        point: `tail` as it is when the task begins, `event time 2026-06-01`, `checkpoint NAME`, or
        a stream cut. That is what it waits for where nothing else is given.
    :param unread_at_least: that many events are unread.
    :param unread_at_most: no more than that are unread; 0 waits until nothing is.
    """

    template_fields: Sequence[str] = (
        "reader_group", "up_to", "unread_at_least", "unread_at_most",
    )  # fmt: skip

    def __init__(
        self,
        *,
        reader_group: str,
        up_to: str = "",
        unread_at_least: int | str | None = None,
        unread_at_most: int | str | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        _check_one(up_to=up_to or None, unread_at_least=unread_at_least,
                   unread_at_most=unread_at_most)  # fmt: skip
        self.reader_group = reader_group
        self.up_to = up_to
        self.unread_at_least = unread_at_least
        self.unread_at_most = unread_at_most

    def condition(self, database: Database) -> Condition:
        group = reader_group_name(self.reader_group)
        least = _number("unread_at_least", self.unread_at_least)
        most = _number("unread_at_most", self.unread_at_most)
        up_to = self.up_to or "tail"
        at = time_of(up_to)
        if least is None and most is None and at is None:

            def aim(connection: Connection) -> str:
                streams, locked = lock_group_and_streams(connection, group)
                cuts = find_cuts(connection, streams, up_to, locked.group_id, as_end=True)
                return aim_of(connection, group, cuts)

            return Condition("aim", database.transaction(aim), at_most=0)
        if ("group", group) not in progress_of(database, [("group", group)]):
            raise no_such_group(group)
        if at is not None:
            return Condition("group", group, until=_micros(at))
        return Condition("group", group, at_least=least, at_most=most)


class StreamSensor(WeirSensor):
    """Wait for a stream: until it has new events, or is complete up to an event time.

    :param stream: the stream.
    :param new_events: that many events are appended, from when the task begins. 1 is what it waits
        for where nothing else is given.
    :param complete_until: it is complete up to this event time, as its writers state (semantics
        16.4), such as `{{ data_interval_end }}`.
    """

    template_fields: Sequence[str] = ("stream", "new_events", "complete_until")

    def __init__(
        self,
        *,
        stream: str,
        new_events: int | str | None = None,
        complete_until: str = "",
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        _check_one(new_events=new_events, complete_until=complete_until or None)
        self.stream = stream
        self.new_events = new_events
        self.complete_until = complete_until

    def condition(self, database: Database) -> Condition:
        name = stream_name(self.stream)
        found = progress_of(database, [("stream", str(name))])
        if not found:
            raise no_such_stream(name)
        now = found["stream", str(name)]
        if not self.complete_until:
            new = _number("new_events", self.new_events)
            return Condition("stream", now.name, at_least=now.events + (1 if new is None else new))
        if now.event_time is None:
            raise no_event_time(name)
        return Condition("stream", now.name, until=_micros(parse_time(self.complete_until)))


class StoreSensor(WeirSensor):
    """Wait until an adjunct store has taken in everything that was committed before a time.

    :param adjunct_store: the store.
    :param up_to: the time; when the task begins, if none is given.
    """

    template_fields: Sequence[str] = ("adjunct_store", "up_to")

    def __init__(self, *, adjunct_store: str, up_to: str = "", **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.adjunct_store = adjunct_store
        self.up_to = up_to

    def condition(self, database: Database) -> Condition:
        # The position of a store is that of a reader group of its name (decision 39).
        at = parse_time(self.up_to) if self.up_to else datetime.now(UTC)
        found = progress_of(database, [("group", self.adjunct_store)])
        if "/" not in self.adjunct_store or not found:
            from weir.adjunct.stores import no_such_store  # loads pyarrow

            raise no_such_store(self.adjunct_store)
        return Condition("group", self.adjunct_store, until=_micros(at))


def _micros(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


def _number(name: str, given: int | str | None) -> int | None:
    """Return a count, which a template gives as a text. Raises InvalidInput for what is none, or
    what nothing can have."""
    if given is None or re.fullmatch("[0-9]{1,18}", str(given).strip()):
        return None if given is None else int(given)
    raise InvalidInput(
        "argument_invalid",
        f"{name} is {given!r}; it must be a whole number of at least 0 and at most 18 digits.",
    )


def _check_one(**conditions: object) -> None:
    """Raise InvalidInput if a sensor is to wait for more than one thing."""
    given = [name for name, value in conditions.items() if value is not None]
    if len(given) > 1:
        raise InvalidInput(
            "arguments_conflict",
            f"{' and '.join(given)} are given, and a sensor waits for one thing; give one of them.",
        )
