"""One run of publication: stream after stream, each in steps that may be killed anywhere."""

import logging
import uuid
from collections.abc import Sequence
from functools import partial
from typing import NotRequired, TypedDict

from weir.annex.publication import plan as planning
from weir.annex.publication import records
from weir.annex.publication.plan import Plan
from weir.controller.locks import read_stream
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound, Unavailable
from weir.front_ends import do
from weir.installation.extras import naming_extras
from weir.model.names import StreamName
from weir.queries.annex.publication.plan import Due, due
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, not_writable

log = logging.getLogger("weir.annex.publication")


class Published(TypedDict):
    """What was done to the table of a stream: how many files came and went, its new `snapshot`;
    whether it has `ended`, or another run is `busy` with it; or the `error`."""

    stream: str
    added: NotRequired[int]
    removed: NotRequired[int]
    snapshot: NotRequired[int]
    ended: NotRequired[bool]
    busy: NotRequired[bool]
    error: NotRequired[str]


def publish(
    database: Database,
    settings: Settings,
    names: Sequence[StreamName] | None = None,
    *,
    dry_run: bool = False,
) -> list[Published]:
    """Publish what is new of streams whose setting `publish` asks for it, and end what is not
    asked for any more. `names`: of these streams; None: of all. `dry_run`: only say what there is.

    A stream that fails does not stop the others. Raises NotFound for a stream in `names` that does
    not exist, InvalidInput if it is not to be published, and InvariantViolation if the warehouse is
    another database's.
    """
    check_warehouse_ownership(database, settings.warehouse)
    for name in names or ():
        _check(database, name)
    wanted = None if names is None else [str(name) for name in names]
    found = database.snapshot(lambda c: due(c, names=wanted))
    run = _Run(database, settings, dry_run)
    reports: list[Published] = []
    for one in found:
        try:
            done, failed = database.one_of_many(f"stream {one.stream}", partial(run.stream, one))
        except Unavailable as error:  # the warehouse takes no files: what does not need it goes on
            if error.code == "database_unavailable":
                raise
            done, failed = None, str(error)
        if failed:
            reports.append({"stream": one.stream, "error": failed})
        elif done:
            reports.append(done)
    return reports


def _check(database: Database, name: StreamName) -> None:
    stream = database.transaction(partial(read_stream, name=name))
    if stream.configuration.publish == "none":
        raise InvalidInput(
            "not_publishable",
            f"stream {name} is not to be published; first "
            f"{do('update_stream', stream=str(name), publish='iceberg')}.",
        )


class _Run:
    def __init__(self, database: Database, settings: Settings, dry_run: bool) -> None:
        self._database, self._settings, self._dry_run = database, settings, dry_run
        self._graces = (settings.grace_period, settings.compacted_grace)
        self._root = address(settings.warehouse)

    def stream(self, one: Due) -> Published | None:
        """Publish one stream, or end its publication. Returns what that changed."""
        if not one.wanted:
            return self._end(one)
        try:
            plan = self._plan(one.stream_id)
        except InvalidInput as error:
            self._failed(one, str(error))
            raise
        if plan.state.metadata is not None and plan.state.root != self._root and not self._dry_run:
            self._database.transaction(lambda c: records.end_all(c, one.stream_id))
            plan = self._plan(one.stream_id)
        if not plan.versions or not (plan.makes_snapshot or plan.expires):
            return None
        changes: Published = {
            "stream": one.stream,
            "added": len(plan.added),
            "removed": sum(map(len, plan.removed.values())),
        }
        if self._dry_run:
            return changes
        lease, token = self._settings.transaction_lease, uuid.uuid4().hex
        number = self._database.transaction(lambda c: records.begin(c, one.stream_id, lease, token))
        if number is None:
            return {"stream": one.stream, "busy": True}
        try:
            sequence = self._publish(one, number)
        except OSError as error:
            failed: Exception = not_writable(self._settings.warehouse, error)
            self._ended(one, number, str(failed))
            raise failed from error
        except Exception as error:
            self._ended(one, number, str(error))
            raise
        return {**changes, "snapshot": sequence}

    def _plan(self, stream_id: int) -> Plan:
        return self._database.snapshot(lambda c: planning.plan(c, stream_id, self._graces))

    def _publish(self, one: Due, number: int) -> int:
        with naming_extras():
            from weir.annex.publication.place import Place
            from weir.annex.publication.table import write
        plan = self._plan(one.stream_id)  # again: somebody else may have published meanwhile
        place = Place(*filesystem(self._settings.warehouse), self._root)
        written = write(place, one.stream_id, number, plan, self._settings.compacted_grace)
        self._database.transaction(
            lambda c: records.commit(
                c, one.stream_id, number, self._root, plan, written, self._graces
            )
        )
        return written.sequence

    def _end(self, one: Due) -> Published:
        if not self._dry_run:
            self._database.transaction(lambda c: records.end_all(c, one.stream_id))
        return {"stream": one.stream, "ended": True}

    def _failed(self, one: Due, problem: str) -> None:
        """Record why a stream can't be published."""
        if self._dry_run:
            return
        lease, token = self._settings.transaction_lease, uuid.uuid4().hex
        number = self._database.transaction(lambda c: records.begin(c, one.stream_id, lease, token))
        if number is not None:
            self._ended(one, number, problem)

    def _ended(self, one: Due, number: int, problem: str) -> None:
        try:
            self._database.transaction(lambda c: records.end(c, one.stream_id, number, problem))
        except NotFound:  # the stream was deleted meanwhile
            log.info("stream %s was deleted while it was published", one.stream)


def address(warehouse: str) -> str:
    """Return the address of a warehouse as other engines take it."""
    warehouse = warehouse.rstrip("/")
    if "://" not in warehouse:
        return "file://" + warehouse
    return warehouse.partition("?")[0].rstrip("/").replace("s3a://", "s3://", 1)
