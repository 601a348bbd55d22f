"""Build versions of adjunct stores: find out who builds what, let it be written, and publish it."""

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from weir.adjunct.builds import Build, Built, Running, begin_build
from weir.adjunct.publication import fail_build, publish_build, renew_build
from weir.adjunct.stores import AdjunctStore, read_store, read_stores
from weir.adjunct.versions import AdjunctVersion
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.queries import Cut
from weir.database.connection import Database
from weir.errors import BuildFailed, Busy, Fenced, Unavailable, WeirError
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.settings import Settings
from weir.spark.adjuncts.changes import code_of
from weir.spark.adjuncts.writer import Writer
from weir.spark.failures.causes import raising_own, sentence
from weir.spark.failures.lost_files import saying_why
from weir.spark.failures.unreadable import jvm_has_ended
from weir.warehouse.marker import check_unused

log = logging.getLogger("weir.adjunct")
_POLL = 1.0  # seconds between two looks at a build of somebody else
_SAY = 30.0  # seconds between two lines that say so


def build_version(
    app: Installation, name: str, cut: Cut | None = None, clock: int | None = None
) -> AdjunctVersion:
    """Return a version of a store that is complete to a cut of its stream, and build it if need be.

    Spark is started only if there are events to read. `cut`: None for the tail as it is now.
    `clock`: the clock of the cut, if the caller has closed one. While another builder is at work,
    waits for it, for at most the `patience` of the store.
    Raises NotFound, Truncated for events that were truncated before the store read them, BadRows
    for events without a key and for those that fail, and Busy if the other builder takes too long.
    """
    database = app.database
    store = database.transaction(lambda c: read_store(c, name))
    if cut is None:
        cut, clock = database.transaction(lambda c: _tail(c, store))
    until = time.monotonic() + store.configuration.patience
    say_at = time.monotonic()
    while True:
        with _recording(database, name):
            code = code_of(store.definition, app.settings)
            begun = begin_build(
                database, name, builder=app.source, lease=app.settings.transaction_lease,
                code=code, cut=cut, clock=clock,
            )  # fmt: skip
        if isinstance(begun, AdjunctVersion):
            return begun
        if isinstance(begun, Build):
            _build(app, begun)
        elif time.monotonic() > until:
            raise Busy(
                "adjunct_build_running",
                f"{begun.builder} has been building version {begun.version} of adjunct store "
                f"{name} for longer than {store.configuration.patience} s; wait, or give the store "
                "more patience: "
                f"{do('update_adjunct_store', adjunct_store=name, patience='SECONDS')}.",
            )
        else:
            assert isinstance(begun, Running)
            if time.monotonic() >= say_at:
                app.say(
                    f"waiting for {begun.builder}, which builds version {begun.version} of adjunct "
                    f"store {name}; if it has ended, its lease ends in {begun.leased:.0f} s"
                )
                say_at = time.monotonic() + _SAY
            time.sleep(_POLL)
        store = database.transaction(lambda c: read_store(c, name))


def _tail(connection: Connection, store: AdjunctStore) -> tuple[Cut | None, int | None]:
    row = connection.execute(
        text(
            """SELECT tail_cut(stream_id) AS cut, last_clock FROM stream
            WHERE stream_id = :s AND state <> 'deleted'"""
        ),
        {"s": store.stream_id},
    ).one_or_none()
    return (None, None) if row is None else (dict(row.cut), row.last_clock)


@contextmanager
def _recording(database: Database, name: str, build: Build | None = None) -> Iterator[None]:
    """Run a part of a build, and record in the store why it failed if it does."""
    try:
        yield
    except (Fenced, Unavailable):
        raise
    except Exception as error:
        if jvm_has_ended(error):  # perhaps because of this store: so it is built last from now on
            raise
        try:
            fail_build(database, name, build, sentence(error))
        except Exception as another:  # the first one matters
            log.warning("why a build failed could not be recorded: %s", another)
        raise


def _build(app: Installation, build: Build) -> None:
    """Write a version and publish it."""
    lease = app.settings.transaction_lease
    with _recording(app.database, build.store.name, build):
        check_warehouse_ownership(app.database, app.settings.warehouse)
        check_unused(app.settings.warehouse, build.folder)
        with app.database.keep_alive(lambda c: renew_build(c, build, lease), every=lease / 3):
            with (
                saying_why(app.database, app.settings),
                raising_own(),
                Writer(app, build).writing() as writer,
            ):
                built = writer.write()
            version = publish_build(app.database, build, built)
        app.say(
            f"version {version.version} of adjunct store {version.store} is published: "
            f"{version.rows:,} keys, of which {built.upserts:,} are new or changed and "
            f"{built.deletes:,} were deleted by {built.events:,} events"
        )


def with_other_code(
    database: Database, settings: Settings, built_with: Mapping[str, str | None]
) -> list[str]:
    """Return those of some stores whose functions have other code now, or can't be loaded: then a
    build says why."""
    stores = database.transaction(lambda c: read_stores(c, list(built_with)))

    def is_other(store: AdjunctStore) -> bool:
        try:
            return code_of(store.definition, settings) != built_with[store.name]
        except Exception:  # to import a function runs any code; the build says how it fails
            return True

    return [name for name in built_with if name in stores and is_other(stores[name])]


def build_stores(app: Installation, names: Sequence[str]) -> list[Built]:
    """Build a version of each of these stores that is complete to the tail as it is now.

    A store that fails does not stop the others. A store that was deleted is left out. Raises what
    ended the JVM, because no store can be built without it.
    """
    reports: list[Built] = []
    for name in names:
        work = partial(build_version, app, name)
        version, error = app.database.one_of_many(
            f"adjunct store {name}", partial(_with_weir_errors, work, name)
        )
        if version is None and not error:
            continue  # it was deleted meanwhile
        if version is None:
            reports.append({"adjunct_store": name, "error": error})
            continue
        reports.append({
            "adjunct_store": name, "version": version.version, "keys": version.rows,
            "bytes": version.bytes, "files": len(version.files),
        })  # fmt: skip
    return reports


def _with_weir_errors(work: Callable[[], AdjunctVersion], store: str) -> AdjunctVersion:
    """Do the work; an error of Spark becomes one of Weir's, so that it stops no other store."""
    try:
        return work()
    except (WeirError, DBAPIError):
        raise
    except Exception as error:
        if jvm_has_ended(error):
            raise
        raise BuildFailed(
            "adjunct_build_failed",
            f"Spark could not build a version of adjunct store {store} ({sentence(error)}); "
            "correct the cause, or try again.",
        ) from error
