"""Open an installation for a program, and one for all that work in the same process."""

import os
from typing import TYPE_CHECKING

from weir.database.connection import Database
from weir.errors import InvalidInput, check_text
from weir.installation.extras import naming_extras
from weir.installation.opened import Say, log, remote_spark, shared_database
from weir.operations.engines import CONNECT
from weir.programs.store import StreamStore
from weir.settings import Settings, load, of_program

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open(
    database: str = "",
    warehouse: str | os.PathLike[str] = "",
    *,
    spark: "SparkSession | None" = None,
    source: str = "program",
    say: Say = log.info,
    settings: Settings | None = None,
) -> StreamStore:
    """Open an installation, and return it. It connects when it is first used; a `with` block closes
    it.

        with weir.open() as store:
            store.create_stream("shop/orders", routing_key="customer")
            store.append("shop/orders", [{"customer": "c1", "amount": 3}])

    The settings are those of the file that WEIR_CONFIG names, or of the `weir.toml` in the current
    folder or one above it, as for commands. Or `database` (a URL, or whatever libpq takes) and
    `warehouse` (a folder or a URI) name the installation without a file; or `settings` has all of
    them. `spark`: a session, for what needs one, and for readers, which then give DataFrames;
    otherwise readers give tables of pyarrow, and a session is started when something else needs it.
    `source`: who works with it, in views and lineage. `say`: takes lines of progress.

    Raises InvalidInput for a wrong setting, for both ways at once, for an argument of another kind,
    and for what is no session of Spark.
    """
    warehouse = os.fspath(warehouse) if isinstance(warehouse, os.PathLike) else warehouse
    for name, text in (("database", database), ("warehouse", warehouse), ("source", source)):
        check_text(name, text)
    if settings is not None and (database or warehouse):
        raise InvalidInput(
            "arguments_conflict",
            "settings are given, and a database or a warehouse beside them; give either.",
        )
    if not isinstance(settings, Settings | None):
        raise InvalidInput(
            "argument_invalid",
            f"settings are {settings!r}; give weir.Settings, or leave them away for those of "
            "weir.toml.",
        )
    engine = "pyarrow"
    if spark is not None:
        with naming_extras():
            from weir.spark.base.session import check_session, is_connect
        check_session(spark)
        engine = CONNECT if is_connect(spark) else "spark"
    if settings is None:
        settings = of_program(database, warehouse) if database or warehouse else load()
    return _store(settings, Database.of(settings), spark, source, say, engine)


def shared(settings: Settings | None = None, source: str = "program") -> StreamStore:
    """Return the installation of these settings (None: those of jobs), over connections that all of
    this process share who name the same ones: for tasks that read in many places."""
    return _store(*shared_database(settings), None, source, log.info)


def _store(
    settings: Settings,
    database: Database,
    spark: "SparkSession | None",
    source: str,
    say: Say,
    engine: str = "pyarrow",
) -> StreamStore:
    def start() -> "SparkSession":
        with naming_extras():
            from weir.spark.base.session import session

        return session(f"weir {source}", remote_spark(settings))

    if spark is None:
        return StreamStore(settings, database, source, say, start)
    return StreamStore(settings, database, source, say, lambda: spark, engine)
