"""A stream, a reader group or an adjunct store as somebody asks for it, and the one way to bring it
there: that of the forms that create and change one, and of a file that declares many."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, Protocol, cast

from weir.adjunct.stores import (
    StoreDefined,
    StoreSettings,
    StoreUpdated,
    define_store,
    read_store,
    update_store,
)
from weir.consumers.column_users import allowing
from weir.controller.locks import read_stream
from weir.controller.streams import StreamCreated, create_stream, schema_by_id
from weir.controller.update import StreamUpdated, update_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.column_changes import NOTHING, ColumnChanges
from weir.model.names import StreamName
from weir.model.schema import Field
from weir.operations.action import Job
from weir.operations.expressions import check_time
from weir.operations.form import Form
from weir.reader_groups.groups.lifecycle import GroupCreated, create_reader_group
from weir.reader_groups.groups.pins import Pin
from weir.reader_groups.groups.update import GroupUpdated, update_reader_group
from weir.retention.choose import choosing
from weir.settings import Settings

Planned = tuple[str, list[Field]]  # the routing key and the columns that a stream is to have


class Allowed(NamedTuple):
    """What a change may do that is refused otherwise: lose data, begin after truncated events, and
    touch columns that others name."""

    loss: bool
    truncated: bool
    named: bool


class Asked(Protocol):
    """What one object is to be."""

    def check(self, database: Database, settings: Settings) -> None:
        """Check what can be checked before anything is changed. Raises InvalidInput."""

    def bring(
        self, database: Database, settings: Settings, allowed: Allowed, *, request_id: str
    ) -> Mapping[str, object]:
        """Create or change it in one transaction. Return and raise as the function that does."""


@dataclass(frozen=True)
class AskedStream:
    """What a stream is to be. `settings`: of `Configuration`; all of a new one, or those to change.
    `segments`: with which a new one begins; None: it is there. `exact`: whether a stream of fixed
    scaling loses segments that are more than its minimum. `dry_run`: undo everything."""

    name: StreamName
    settings: Mapping[str, object]
    segments: int | None = None
    columns: ColumnChanges = NOTHING
    complete_until: str = ""
    exact: bool = True
    dry_run: bool = False

    def columns_after(self, known: list[Field] | None) -> list[Field] | None:
        """Return the columns that it is to have, of those that are known; None if there are none
        yet."""
        if not self.columns:
            return known or None
        return self.columns.applied(str(self.name), known or None, [])[0] or None

    def check_with(self, known: list[Field] | None) -> None:
        """Check its event time with the columns that it is to have. Raises InvalidInput."""
        event_time = self.settings.get("event_time")
        if isinstance(event_time, str) and event_time:
            check_time(self.name, event_time, self.columns_after(known))

    def check(self, database: Database, _settings: Settings) -> None:
        known = None
        if self.segments is None and self.settings.get("event_time"):
            known = database.transaction(
                lambda c: schema_by_id(c, read_stream(c, self.name).stream_id)
            )
        self.check_with(known)

    def bring(
        self, database: Database, settings: Settings, allowed: Allowed, *, request_id: str
    ) -> StreamCreated | StreamUpdated:
        if self.segments is not None:
            return create_stream(
                database, self.name, segments=self.segments,
                fields=list(self.columns.add) or None, dropped=self.columns.reserve,
                request_id=request_id, **self.settings,
            )  # fmt: skip
        _check_something(self.settings or self.columns or self.complete_until)
        return update_stream(
            database, self.name, self.settings, column_changes=self.columns,
            allowing=allowing(allowed.named or self.dry_run, settings.function_path),
            keep_segments=not self.exact, choosing=choosing(allowed.loss),
            complete_until=self.complete_until, dry_run=self.dry_run, request_id=request_id,
        )  # fmt: skip


@dataclass(frozen=True)
class AskedGroup:
    """What a reader group is to be. `settings`: of `GroupConfiguration`; all of a new one, or those
    to change. `streams`: all that it reads, new ones from `start` on; None, like `pins`: as they
    are. `generation`: that of the group to change; None: any."""

    name: str
    new: bool
    settings: Mapping[str, object]
    streams: Sequence[StreamName] | None = None
    start: str = "head"
    end: str = ""
    pins: Sequence[Pin] | None = None
    generation: int | None = None

    @property
    def reads(self) -> list[str]:
        """The names of the streams that it is to read."""
        return list(map(str, self.streams or ()))

    @property
    def changed(self) -> list[str]:
        """The names of what is to change."""
        streams = ["streams", "start"] if self.streams is not None else []
        return [*self.settings, *streams, *(["pins"] if self.pins is not None else [])]

    def check(self, database: Database, settings: Settings) -> None:
        """Nothing: the transaction checks all."""

    def bring(
        self, database: Database, _settings: Settings, allowed: Allowed, *, request_id: str
    ) -> GroupCreated | GroupUpdated:
        if not self.new:
            _check_something(self.changed)
            return update_reader_group(
                database, self.name, generation=self.generation, streams=self.streams,
                start=self.start, pins=self.pins, allow_loss=allowed.loss,
                allow_truncated=allowed.truncated, request_id=request_id, **self.settings,
            )  # fmt: skip
        made = create_reader_group(
            database, self.name, self.streams or (), start=self.start, end=self.end,
            allow_loss=allowed.loss, allow_truncated=allowed.truncated, request_id=request_id,
            **self.settings,
        )  # fmt: skip
        if self.pins:
            update_reader_group(database, self.name, pins=self.pins, request_id=request_id)
        return made


@dataclass(frozen=True)
class AskedStore:
    """What an adjunct store is to be. `settings`: of `AdjunctConfiguration` and
    `AdjunctDefinition`, and `time_out`; all of a new one, or those to change. `stream`: that of a
    new one; None: it is there."""

    name: str
    settings: Mapping[str, Any]
    stream: StreamName | None = None

    @property
    def whole(self) -> StoreSettings:
        """All settings of a new one. Raises InvalidInput for a wrong one."""
        assert self.stream is not None
        return StoreSettings(
            stream=self.stream, time_out=self.settings.get("time_out"),
            configuration=AdjunctConfiguration().changed(self._of(AdjunctConfiguration)),
            definition=AdjunctDefinition(**self._of(AdjunctDefinition)),
        )  # fmt: skip

    def _of(self, part: type[Form]) -> dict[str, Any]:
        return {one.name: self.settings[one.name] for one in fields(part)
                if one.name in self.settings}  # fmt: skip

    def check(self, database: Database, settings: Settings, planned: Planned | None = None) -> None:
        """Check its definition with the columns of the stream, or with those that are planned."""
        from weir.consumers.store_check import check_definition

        if self.stream is not None:
            stream, wanted = self.stream, self.whole.definition
        elif redefined := self._of(AdjunctDefinition):
            known = database.transaction(lambda c: read_store(c, self.name))
            stream, wanted = known.stream, replace(known.definition, **redefined)
        else:
            return
        check_definition(database, settings, self.name, stream, wanted, planned)

    def bring(
        self, database: Database, _settings: Settings, _allowed: Allowed, *, request_id: str
    ) -> StoreDefined | StoreUpdated:
        if self.stream is not None:
            whole = self.whole
            return define_store(
                database, self.name, whole.stream, whole.configuration, whole.definition,
                time_out=whole.time_out, request_id=request_id,
            )  # fmt: skip
        _check_something(self.settings)
        return update_store(
            database, self.name, self._of(AdjunctConfiguration), self._of(AdjunctDefinition),
            time_out=self.settings.get("time_out"),
            change_time_out="time_out" in self.settings, request_id=request_id,
        )  # fmt: skip


def bring(
    job: Job, asked: Asked, *, loss: bool = False, truncated: bool = False, named: bool = False
) -> Mapping[str, object]:
    """Bring one object to what is asked, say what that deletes and leaves out, and return what was
    done."""
    asked.check(job.database, job.settings)
    allowed = Allowed(loss, truncated, named)
    done = asked.bring(job.database, job.settings, allowed, request_id=job.request_id)
    job.say_all(lines(done))
    return done


def lines(done: Mapping[str, object]) -> list[str]:
    """Return what a change says of events: those that are missing, read and deleted by it."""
    said = [done.get(what) or [] for what in ("missing", "reads", "deletes")]
    return [line for some in cast(list[list[str]], said) for line in some]


def _check_something(asked: object) -> None:
    if not asked:
        raise InvalidInput("argument_invalid", "no setting is given; give at least one.")
