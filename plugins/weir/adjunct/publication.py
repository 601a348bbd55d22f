"""Keep a build alive, publish what it has written, or record why it failed."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from weir.adjunct.builds import EXTENDED, REBUILT, Build
from weir.adjunct.stores import AdjunctStore, lock_store_and_stream
from weir.adjunct.versions import AdjunctFile, AdjunctVersion, read_version
from weir.controller.cuts import load_cuts
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.errors import Fenced
from weir.model.schema import Field
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
    renewed = connection.execute(
        text(
            """UPDATE adjunct_version
            SET lease_until = clock_timestamp() + :lease * interval '1 second'
            WHERE store_id = :a AND version = :v AND attempt = :attempt AND state = 'building'"""
        ),
        {"a": build.store.store_id, "v": build.version, "attempt": build.attempt, "lease": lease},
    )
    if renewed.rowcount == 0:
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
        state = connection.execute(
            text("SELECT state FROM adjunct_version WHERE store_id = :a AND version = :v"),
            {"a": store.store_id, "v": build.version},
        ).scalar_one()
        if state == "building":
            files = [("table", file) for file in built.files]
            files += [("history", file) for file in built.history or ()]
            connection.execute(
                _PUBLISH,
                {
                    "a": store.store_id, "v": build.version, "fields": json.dumps(built.fields),
                    "layout": layout, "bytes": built.bytes, "events": built.events,
                    "rows": sum(file.rows for file in (*built.files, *built.kept)),
                    "upserts": built.upserts, "deletes": built.deletes,
                    "null_keys": built.null_keys, "failed_rows": built.failed_rows,
                    "history_from": None if built.history is None else _history_from(build),
                    "paths": [file.path for _, file in files],
                    "kinds": [kind for kind, _ in files],
                    "lows": [file.low for _, file in files],
                    "highs": [file.high for _, file in files],
                    "counts": [file.rows for _, file in files],
                    "sizes": [file.bytes for _, file in files],
                    "table": [file.path for file in (*built.files, *built.kept)],
                },
            )  # fmt: skip
            if stream is not None:
                (cut,) = load_cuts(connection, stream.stream_id, build.cut)
                place_at(connection, store.group_id, {stream.stream_id: cut})
                mark_retention_due(connection, [stream.stream_id])
        return read_version(connection, store.store_id, build.version)

    return database.transaction(work)


# The constraint on files is checked at the end of a statement, so one statement inserts all.
_PUBLISH = text(
    """WITH file AS (
        INSERT INTO adjunct_file (store_id, path, kind, version, low, high, row_count, bytes)
        SELECT :a, f.path, f.kind, :v, f.low, f.high, f.rows, f.bytes
        FROM unnest(CAST(:paths AS text[]), CAST(:kinds AS text[]), CAST(:lows AS bigint[]),
            CAST(:highs AS bigint[]), CAST(:counts AS bigint[]), CAST(:sizes AS bigint[]))
            AS f (path, kind, low, high, rows, bytes)
    ), part AS (
        INSERT INTO adjunct_version_file (store_id, version, path)
        SELECT :a, :v, p FROM unnest(CAST(:table AS text[])) p
    ), superseded AS (
        UPDATE adjunct_version SET superseded_at = clock_timestamp()
        WHERE store_id = :a AND version <> :v AND state = 'published' AND superseded_at IS NULL
    ), done AS (
        UPDATE adjunct_store SET error = NULL, failed_at = NULL WHERE store_id = :a
    )
    UPDATE adjunct_version SET state = 'published', lease_until = NULL,
        published_at = clock_timestamp(), fields = CAST(:fields AS jsonb), layout = :layout,
        row_count = :rows, bytes = :bytes, events = :events, upserts = :upserts,
        deletes = :deletes, null_keys = :null_keys, failed_rows = :failed_rows,
        history_from = :history_from
    WHERE store_id = :a AND version = :v"""
)


def _history_from(build: Build) -> int | None:
    """Return the clock after which all changes are in the history of a version. The changes that a
    converted version adds begin no history: nobody has its keys at the cut of its base."""
    if build.kind == REBUILT:
        return 0
    return build.base.clock if build.base is not None and build.kind == EXTENDED else None


def _check_held(connection: Connection, build: Build, store: AdjunctStore) -> None:
    ours = connection.execute(
        text(
            """SELECT FROM adjunct_version WHERE store_id = :a AND version = :v
            AND attempt = :attempt AND state IN ('building', 'published')"""
        ),
        {"a": build.store.store_id, "v": build.version, "attempt": build.attempt},
    ).one_or_none()
    if ours is None or store.store_id != build.store.store_id:
        raise _fenced(build)


def _fenced(build: Build) -> Fenced:
    return Fenced(
        "adjunct_build_fenced",
        f"version {build.version} of adjunct store {build.store.name} is built by another builder "
        f"now, or was abandoned; try again (Weir will delete what attempt {build.attempt} wrote).",
    )


def fail_build(database: Database, name: str, build: Build | None, sentence: str) -> None:
    """Record why a build failed, and let the next builder continue at once."""

    def work(connection: Connection) -> None:
        _, store = lock_store_and_stream(connection, name)
        connection.execute(
            text(
                """UPDATE adjunct_store SET error = :error, failed_at = clock_timestamp()
                WHERE store_id = :a"""
            ),
            {"a": store.store_id, "error": sentence},
        )
        if build is not None:
            connection.execute(
                text(
                    """UPDATE adjunct_version SET lease_until = clock_timestamp(),
                        silent_attempts = 0
                    WHERE store_id = :a AND version = :v AND attempt = :attempt
                      AND state = 'building'"""
                ),
                {"a": store.store_id, "v": build.version, "attempt": build.attempt},
            )

    database.transaction(work)
