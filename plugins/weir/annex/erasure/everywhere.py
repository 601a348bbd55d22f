"""Erase from a stream and from what was made of it: measure first, then stream after stream, then
delete the files, then sign. Each step may be killed; the same request continues."""

import json
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple, NotRequired, TypedDict

from sqlalchemy import Connection

from weir.annex.erasure.asked import as_recorded, is_asked
from weir.annex.erasure.certificate import sign_if_gone
from weir.annex.erasure.columns import Columns
from weir.annex.erasure.copies import (
    COLUMN,
    KEY,
    NOTHING,
    REJECTED,
    Remaining,
    Searched,
    searched,
    without_keys,
)
from weir.annex.erasure.find import (
    Each,
    digest_of,
    events_in,
    in_rejected,
    places,
    plan,
    where,
    with_keys,
)
from weir.annex.erasure.outputs import (
    Table,
    Written,
    erase_output,
    erase_rows_of_table,
    left_of,
    left_table,
    rows_in_table,
    rows_with_keys,
    searched_outputs,
    searched_tables,
)
from weir.annex.erasure.records import Asked, Offsets, files_with
from weir.annex.erasure.requests import SearchedStream, end
from weir.annex.erasure.run import erase
from weir.annex.erasure.sentences import RECORDED, Recorded, forget_in
from weir.annex.erasure.stores import Store, erase_rows, rows_with, searched_stores
from weir.annex.publication.run import publish
from weir.controller.locks import read_stream
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError, counted
from weir.front_ends import give
from weir.kernel.matching import Matching, in_columns, routing_keys, with_routing_keys
from weir.kernel.schema import to_read
from weir.model.names import StreamName, unusable_key
from weir.queries.annex.erasure import everywhere as sql
from weir.queries.annex.erasure import requests as request_sql
from weir.queries.annex.erasure.requests import Request
from weir.reader_groups.outputs.tables import sweep_staging
from weir.retention.garbage import sweep
from weir.settings import Settings

Found = Mapping[int, Offsets]


@dataclass(frozen=True)
class Wanted:
    """What is to be erased: the events of some routing keys of a stream, or those that fulfil a
    condition. `subject`: the column that has the keys in what was made of it."""

    stream: StreamName
    keys: tuple[str, ...] = ()
    condition: str = ""
    subject: str = ""
    everything: bool = False


@dataclass(frozen=True)
class Measured:
    """What an erasure finds: of each stream how many events, in how many files; of each adjunct
    store and output how many rows; and what it leaves."""

    streams: dict[str, tuple[int, int]]
    stores: dict[str, int]
    outputs: dict[str, int]
    places: dict[str, str]  # of each stream a digest of where the events are
    remains: list[Remaining]
    all_of_it: bool  # whether it is every event of the stream

    @property
    def events(self) -> int:
        """How many events are found, of all streams."""
        return sum(events for events, _ in self.streams.values())

    @property
    def something(self) -> bool:
        """Whether anything is found."""
        return bool(self.events or any(self.stores.values()) or any(self.outputs.values()))


class _Copies(NamedTuple):
    """What an erasure searches, and what it leaves."""

    streams: list[Searched]
    stores: list[Store]
    outputs: list[Written]
    tables: list[Table]
    remains: list[Remaining]


class EraseReport(TypedDict):
    """What was erased, by stream, store and output: how many events and rows; or would be.

    Of an erasure the sum of its `events`, whether its certificate is `signed`, and what it
    `waits_for`; of a dry run by stream the events and files, `places`, and what was `asked`."""

    dry_run: bool
    streams: Mapping[str, int | list[int]]
    stores: dict[str, int]
    outputs: dict[str, int]
    remains: list[dict[str, str]]
    events: NotRequired[int]
    signed: NotRequired[bool]
    waits_for: NotRequired[list[str]]
    places: NotRequired[object]
    asked: NotRequired[dict[str, object]]


class Everywhere:
    """An erasure of an installation."""

    def __init__(
        self, database: Database, settings: Settings, wanted: Wanted,
        recorded: Sequence[Recorded] = RECORDED, each: Each | None = None,
    ) -> None:  # fmt: skip
        if bool(wanted.keys) == bool(wanted.condition):
            raise InvalidInput(
                "argument_missing",
                "what to erase is not clear; give keys, or a condition, and not both.",
            )
        for place, key in enumerate(wanted.keys, 1):
            if why := unusable_key(key):  # without the key: errors are kept
                raise InvalidInput(
                    "argument_invalid",
                    f"key {place} of {len(wanted.keys):,} {why}, so no event has it; leave it out, "
                    "or where a quarantined row has it, give a condition about that stream.",
                )
        self._database, self._settings = database, settings
        self._wanted, self._recorded, self._each = wanted, recorded, each

    def _searched(self) -> _Copies:
        wanted, by_keys = self._wanted, bool(self._wanted.keys)

        def found(connection: Connection) -> _Copies:
            stream_id = read_stream(connection, wanted.stream).stream_id
            streams, left = searched(connection, stream_id, wanted.subject, by_keys=by_keys)
            stores, more = searched_stores(connection, streams, by_keys=by_keys)
            roots = self._settings.output_roots
            outputs, unsearched = searched_outputs(connection, streams, roots, by_keys=by_keys)
            tables, untouched = searched_tables(connection, streams, by_keys=by_keys)
            every = (*more, *unsearched, *untouched, *left)
            remains = [without_keys(one, wanted.keys) for one in every]
            streams = [one for one in streams if one.by != NOTHING]
            return _Copies(streams, stores, outputs, tables, remains)

        return self._database.snapshot(found)

    def _find(self, one: Searched) -> Found:
        """Find the events of a stream, whatever they are in."""
        slices, columns = plan(self._database, one.stream_id)
        if not slices:
            return {}
        if one.by == KEY and self._wanted.keys:
            slices = with_keys(slices, self._wanted.keys)
        match = self._match(one, columns)
        return places(self._settings, slices, columns.of_files, match, self._each)

    def _match(self, one: Searched, columns: Columns) -> Matching:
        """Return what matches the events of a stream. Raises InvalidInput if it can't be known."""
        condition, keys = self._wanted.condition, self._wanted.keys
        now = list(columns.versions[-1])
        if condition:
            return where(condition, now)
        if one.by == REJECTED:
            return in_rejected(one.columns, keys, texts=one.texts)
        if one.by == COLUMN:
            return in_columns(one.columns, keys)
        return with_routing_keys(routing_keys(one.name, one.routing_key, to_read(now)), keys)

    def measure(self) -> Measured:
        """Find what would be erased, and change nothing. Raises NotFound, and InvalidInput for a
        condition that can't be computed."""
        streams: dict[str, tuple[int, int]] = {}
        where: dict[str, str] = {}
        copies = self._searched()
        them, remains = copies.streams, list(copies.remains)
        all_of_it = False
        for one in them:
            found = self._find(one)
            files = self._database.snapshot(
                lambda c, s=one.stream_id, f=found: files_with(c, s, f)  # type: ignore[misc]  # the loop's own
            )
            streams[str(one.name)] = (sum(len(at) for _, at in files), len(files))
            where[str(one.name)] = digest_of(found)
            if one.name == self._wanted.stream:
                all_of_it = self._is_all(one, found)
        of_stores = Counter[str]()
        for store in copies.stores:
            of_stores[store.name] += rows_with(
                self._database, self._settings, store, self._wanted.keys
            )
        outputs: dict[str, int] = {}
        for output in copies.outputs:
            seen = rows_with_keys(output, self._wanted.keys)
            outputs[f"{output.name} of {output.group}"] = seen.rows
            remains += left_of(output, seen)
        for table in copies.tables:
            of_it = self._database.transaction(
                lambda c, t=table: rows_in_table(c, t, self._wanted.keys)  # type: ignore[misc]  # the loop's own
            )
            if of_it.why is None:
                outputs[f"table {table.name}"] = of_it.erased or 0
            else:
                remains.append(left_table(table.name, of_it.why))
        return Measured(streams, of_stores, outputs, where, remains, all_of_it)

    def _is_all(self, one: Searched, found: Found) -> bool:
        events = self._database.snapshot(lambda c: sql.events(c, stream_id=one.stream_id))
        return bool(events) and events_in(found) >= events

    def _checked(self, one: Searched) -> Found:
        found = self._find(one)
        if self._wanted.condition and not self._wanted.everything and self._is_all(one, found):
            raise InvalidInput(
                "argument_missing",
                f"the condition is true for every event of stream {one.name} "
                f"({counted(events_in(found), 'event')}), so nothing was erased; correct it, or, "
                f"if that is meant, {give(everything=True)}.",
            )
        return found

    def erase(
        self, request_id: str, by: str, reason: str, say: Callable[[str], None],
        *, by_hand: bool = False,
    ) -> EraseReport:  # fmt: skip
        """Erase, and return the report. The same request returns it again, and continues what was
        interrupted. `by_hand`: each try is another request, so it continues one for the same that
        has the same reason. What finds nothing returns the report of the last request for the same
        with the same reason, and ends that. Raises as `weir.annex.erasure.run.erase`."""
        database, wanted = self._database, self._wanted
        before = self._alike(reason, done=False) if by_hand else self.request(request_id)
        request_id = before.request_id if before else request_id
        same: Request | None = None
        if before is None or before.searched is None:
            check_warehouse_ownership(database, self._settings.warehouse)
            copies = self._searched()
            them, remains = copies.streams, list(copies.remains)
            if before is None:
                asked = as_recorded(secrets.token_bytes(16), wanted.keys, wanted.condition)
                database.transaction(
                    lambda c: request_sql.begin(
                        c,
                        request_id=request_id,
                        stream_id=them[0].stream_id,
                        by=by,
                        reason=reason,
                        asked=json.dumps(asked),
                    )
                )
                before = self.request(request_id)
                assert before is not None
            what = Asked(by, reason, {**before.asked, "request": request_id})
            try:
                for one in them:
                    find = self._checked if one is them[0] else self._find
                    keys = wanted.keys if one.is_of_keys else ()
                    done = erase(database, self._settings, one.name, what, partial(find, one), keys)
                    if done.events:
                        say(f"erased {counted(done.events, 'event')} of stream {one.name}")
                for store in copies.stores:
                    rows = erase_rows(database, self._settings, store, wanted.keys, request_id)
                    if rows:
                        say(f"erased {counted(rows, 'row')} of adjunct store {store.name}")
                remains += self._erase_outputs(copies, request_id, say)
            except WeirError:
                with suppress(WeirError):
                    database.transaction(lambda c: request_sql.forget(c, request_id=request_id))
                raise
            listed = [
                SearchedStream(
                    stream=str(one.name), stream_id=one.stream_id, by=one.by, columns=one.columns
                )
                for one in them
            ]
            for table in self._recorded:
                database.transaction(partial(forget_in, one=table, keys=wanted.keys))
            same = self._alike(reason, done=True)
            database.transaction(lambda c: end(c, request_id, listed, remains, wanted.keys, same))
        if same is not None and self.request(request_id) is None:
            say(f"nothing is left to erase; request {same.request_id} has erased this")
            request_id = same.request_id
        return self._ended(request_id, say)

    def _erase_outputs(
        self, copies: _Copies, request_id: str, say: Callable[[str], None]
    ) -> list[Remaining]:
        """Erase rows of Parquet outputs and tables. Returns what is left of them."""
        keys, left = self._wanted.keys, list[Remaining]()
        for output in copies.outputs:
            seen = erase_output(self._database, output, keys, request_id)
            if seen.rows:
                what = f"{counted(seen.rows, 'row')} of output {output.name} of {output.group}"
                say(f"erased {what}")
            left += left_of(output, seen)
        for table in copies.tables:
            done = self._database.transaction(
                lambda c, t=table: erase_rows_of_table(c, t, keys, request_id)  # type: ignore[misc]  # the loop's own
            )
            if done.erased:
                say(f"erased {counted(done.erased, 'row')} of table {table.name}")
            left += [] if done.why is None else [left_table(table.name, done.why)]
        return left

    def request(self, request_id: str) -> Request | None:
        """Return a request as it is recorded, if it has begun."""
        return self._database.transaction(lambda c: request_sql.find(c, request_id=request_id))

    def _alike(self, reason: str, *, done: bool) -> Request | None:
        """Return the newest request for the same, with the same reason, that has come to its end,
        or that has not."""
        wanted = self._wanted

        def known(connection: Connection) -> list[Request]:
            stream_id = read_stream(connection, wanted.stream).stream_id
            return request_sql.alike(connection, stream_id=stream_id, reason=reason, done=done)

        for one in self._database.snapshot(known):
            if is_asked(one.asked, wanted.keys, wanted.condition):
                return one
        return None

    def _ended(self, request_id: str, say: Callable[[str], None]) -> EraseReport:
        """Delete the files with the events, and sign."""
        done = self.request(request_id)
        if done is None:  # nothing was found, so nothing of it stays
            return {
                "dry_run": False, "events": 0, "streams": {}, "stores": {}, "outputs": {},
                "remains": [],
                "signed": False, "waits_for": [],
            }  # fmt: skip
        grace, waits = self._settings.grace_period, list[str]()
        if not done.signed:
            published = self._publish(done.streams)
            if self._database.transaction(sql.may_sweep):
                sweep_staging(self._database)
                sweep(
                    self._database, self._settings.warehouse, grace,
                    again_after=self._settings.transaction_max,
                    compacted_grace=self._settings.compacted_grace,
                    output_roots=self._settings.output_roots,
                )  # fmt: skip
            waits = sign_if_gone(self._database, request_id, done.streams, grace)
            waits += published
        for one in waits:
            say(f"the certificate waits for {one}; the upkeep that follows signs it")
        assert done.searched is not None
        streams = {one["stream"]: one["events"] for one in done.searched}
        return {
            "dry_run": False, "events": sum(streams.values()), "streams": streams,
            "stores": done.stores,
            "outputs": {name: sum(parts.values()) for name, parts in done.outputs.items()},
            # Stored as jsonb, which has an order of names of its own.
            "remains": [asdict(Remaining(**one)) for one in done.remains or []],
            "signed": not waits, "waits_for": waits,
        }  # fmt: skip

    def _publish(self, streams: Sequence[int]) -> list[str]:
        """Publish streams again, so that no snapshot names the old files. Returns what failed."""
        names = self._database.snapshot(lambda c: sql.published(c, streams=streams))
        wanted = [StreamName(*name) for name in names]
        reports = publish(self._database, self._settings, wanted) if wanted else []
        return [f"{one['stream']}: {one['error']}" for one in reports if "error" in one]
