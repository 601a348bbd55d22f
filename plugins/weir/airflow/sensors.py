"""Sensors that wait for streams, reader groups and adjunct stores. They look once in the worker,
and then wait in the triggerer, where one statement asks for all of them."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.common.compat.sdk import AirflowFailException
from airflow.sdk.bases.sensor import BaseSensorOperator

from weir.airflow.tasks import failing
from weir.airflow.waiting import ConditionTrigger, answered
from weir.controller.locks import no_such_stream
from weir.controller.times import parse_time
from weir.database.connection import Database
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

    def execute(self, context: Any) -> None:
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

    def resume(self, _context: Any, event: str) -> None:
        """End the task. Raises AirflowFailException if what it waits for was deleted."""
        if event != "met":
            raise AirflowFailException(
                "what this sensor waits for was deleted; look at weir.streams and "
                "weir.reader_groups, and clear the task once it is there again."
            )


class GroupReadSensor(WeirSensor):
    """Wait until a reader group has read up to a place.

    :param reader_group: the group.
    :param up_to: a time (everything that was committed before it is read), or any other starting
        point: `tail` as it is when the task begins, `event time 2026-06-01`, `checkpoint NAME`, or
        a stream cut.
    """

    template_fields: Sequence[str] = ("reader_group", "up_to")

    def __init__(self, *, reader_group: str, up_to: str = "tail", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reader_group = reader_group
        self.up_to = up_to

    def condition(self, database: Database) -> Condition:
        group = reader_group_name(self.reader_group)
        if (at := time_of(self.up_to)) is not None:
            _check_group(database, group)
            return Condition("group", group, until=_micros(at))

        def aim(connection: Any) -> str:
            streams, locked = lock_group_and_streams(connection, group)
            cuts = find_cuts(connection, streams, self.up_to, locked.group_id, as_end=True)
            return aim_of(connection, group, cuts)

        return Condition("aim", database.transaction(aim), at_most=0)


class NothingUnreadSensor(WeirSensor):
    """Wait until a reader group has read everything.

    :param reader_group: the group.
    """

    template_fields: Sequence[str] = ("reader_group",)

    def __init__(self, *, reader_group: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reader_group = reader_group

    def condition(self, database: Database) -> Condition:
        group = reader_group_name(self.reader_group)
        _check_group(database, group)
        return Condition("group", group, at_most=0)


class UnreadEventsSensor(WeirSensor):
    """Wait until a reader group has so many unread events.

    :param reader_group: the group.
    :param at_least: how many.
    """

    template_fields: Sequence[str] = ("reader_group", "at_least")

    def __init__(self, *, reader_group: str, at_least: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.reader_group = reader_group
        self.at_least = at_least

    def condition(self, database: Database) -> Condition:
        group = reader_group_name(self.reader_group)
        _check_group(database, group)
        return Condition("group", group, at_least=int(self.at_least))


class NewEventsSensor(WeirSensor):
    """Wait until so many events are appended to a stream, from when the task begins.

    :param stream: the stream.
    :param at_least: how many.
    """

    template_fields: Sequence[str] = ("stream", "at_least")

    def __init__(self, *, stream: str, at_least: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.at_least = at_least

    def condition(self, database: Database) -> Condition:
        now = _progress_of_stream(database, self.stream)
        return Condition("stream", now.name, at_least=now.events + int(self.at_least))


class StreamCompleteSensor(WeirSensor):
    """Wait until a stream is complete up to an event time, as its writers state (semantics 16.4).

    :param stream: the stream.
    :param until: the event time, such as `{{ data_interval_end }}`.
    """

    template_fields: Sequence[str] = ("stream", "until")

    def __init__(self, *, stream: str, until: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.stream = stream
        self.until = until

    def condition(self, database: Database) -> Condition:
        now = _progress_of_stream(database, self.stream)
        if now.event_time is None:
            raise no_event_time(stream_name(self.stream))
        return Condition("stream", now.name, until=_micros(parse_time(self.until)))


class StoreFreshSensor(WeirSensor):
    """Wait until an adjunct store has taken in everything that was committed before a time.

    :param adjunct_store: the store.
    :param up_to: the time; when the task begins, if none is given.
    """

    template_fields: Sequence[str] = ("adjunct_store", "up_to")

    def __init__(self, *, adjunct_store: str, up_to: str = "", **kwargs: Any) -> None:
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


def _check_group(database: Database, group: str) -> None:
    if ("group", group) not in progress_of(database, [("group", group)]):
        raise no_such_group(group)


def _progress_of_stream(database: Database, stream: str) -> Any:
    name = stream_name(stream)
    found = progress_of(database, [("stream", str(name))])
    if not found:
        raise no_such_stream(name)
    return found["stream", str(name)]
