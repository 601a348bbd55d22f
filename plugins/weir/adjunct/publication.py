"""Keep a build alive, publish what it has written, or record why it failed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.adjunct.builds import EXTENDED, REBUILT, Build
from weir.adjunct.stores import AdjunctStore, lock_store_and_stream
from weir.adjunct.versions import AdjunctVersion, read_version
from weir.controller.cuts import load_cuts
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.errors import Fenced
from weir.model.schema import Field
from weir.queries.adjunct import publication as sql
from weir.queries.adjunct.versions import AdjunctFile
from weir.reader_groups.positions import place_at


@dataclass(frozen=True)
class Built:
    """What a builder has written: the files of the table, new ones and those of the base that it
    keeps, and the files of the changes (None: no history is kept)."""

    fields: list[Field]
    files: Sequence[AdjunctFile]
    kept: Sequence[AdjunctFile]
    history: Sequence[AdjunctFile] | None
    events: int
    upserts: int
    deletes: int
    null_keys: int
    failed_rows: int

    @property
    def bytes(self) -> int:
        """The bytes of the table."""
        return sum(file.bytes for file in (*self.files, *self.kept))


def renew_build(connection: Connection, build: Build, lease: float) -> None:
    """Renew the lease of a build. Raises Fenced if another builder has taken it over."""
    if not sql.renew(
        connection,
        store_id=build.store.store_id,
        version=build.version,
        attempt=build.attempt,
        lease=lease,
    ):
        raise _fenced(build)


def publish_build(database: Database, build: Build, built: Built) -> AdjunctVersion:
    """Publish a version: its files, and the position of the store, in one transaction.

    Returns it, also if an earlier try has published it. Raises Fenced if another builder has taken
    it over, or if it was abandoned because the store was defined anew.
    """
    layout = build.store.configuration.layout_of(build.store.name, built.bytes)

    def work(connection: Connection) -> AdjunctVersion:
        stream, store = lock_store_and_stream(connection, build.store.name)
        _check_held(connection, build, store)
        state = sql.state_of(connection, store_id=store.store_id, version=build.version)
        if state == "building":
            files = [("table", file) for file in built.files]
            files += [("history", file) for file in built.history or ()]
            sql.publish(
                connection,
                store_id=store.store_id,
                version=build.version,
                fields=json.dumps(built.fields),
                layout=layout,
                bytes=built.bytes,
                events=built.events,
                rows=sum(file.rows for file in (*built.files, *built.kept)),
                upserts=built.upserts,
                deletes=built.deletes,
                null_keys=built.null_keys,
                failed_rows=built.failed_rows,
                history_from=None if built.history is None else _history_from(build),
                paths=[file.path for _, file in files],
                kinds=[kind for kind, _ in files],
                lows=[file.low for _, file in files],
                highs=[file.high for _, file in files],
                counts=[file.rows for _, file in files],
                sizes=[file.bytes for _, file in files],
                table=[file.path for file in (*built.files, *built.kept)],
            )
            if stream is not None:
                (cut,) = load_cuts(connection, stream.stream_id, build.cut)
                place_at(connection, store.group_id, {stream.stream_id: cut})
                mark_retention_due(connection, [stream.stream_id])
        return read_version(connection, store.store_id, build.version)

    return database.transaction(work)


def _history_from(build: Build) -> int | None:
    """Return the clock after which all changes are in the history of a version. The changes that a
    converted version adds begin no history: nobody has its keys at the cut of its base."""
    if build.kind == REBUILT:
        return 0
    return build.base.clock if build.base is not None and build.kind == EXTENDED else None


def _check_held(connection: Connection, build: Build, store: AdjunctStore) -> None:
    ours = sql.held(
        connection, store_id=build.store.store_id, version=build.version, attempt=build.attempt
    )
    if not ours or store.store_id != build.store.store_id:
        raise _fenced(build)


def _fenced(build: Build) -> Fenced:
    return Fenced(
        "attempt_fenced",
        f"version {build.version} of adjunct store {build.store.name} is built by another builder "
        f"now, or was abandoned; try again (Weir will delete what attempt {build.attempt} wrote).",
    )


def fail_build(database: Database, name: str, build: Build | None, sentence: str) -> None:
    """Record why a build failed, and let the next builder continue at once."""

    def work(connection: Connection) -> None:
        _, store = lock_store_and_stream(connection, name)
        sql.fail(connection, store_id=store.store_id, error=sentence)
        if build is not None:
            sql.let_go(
                connection, store_id=store.store_id, version=build.version, attempt=build.attempt
            )

    database.transaction(work)
