"""What the figures share: a throw-away Postgres, a warehouse, a Spark session, made when needed."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from sqlalchemy import text

from benchmarks.jvm import job_session, options_of
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.read_plan import Slices, plan_of_stream
from weir.database import migrate
from weir.database.connection import Database
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.model.names import StreamName
from weir.settings import Settings
from weir.spark.reads.frames import frame_of


@dataclass
class Setting:
    """One run of the benchmarks."""

    folder: Path
    full: bool
    dsn: str
    server: EmbeddedPostgres
    at_end: ExitStack  # closes what figures share
    new_session: Callable[[], SparkSession] | None = None  # default: as a job makes it
    said: dict[str, Any] = field(default_factory=dict)  # what the line of the figure says, too
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))
    _filled: dict[str, Database] = field(default_factory=dict)

    @cached_property
    def settings(self) -> Settings:
        """Return the settings of an installation below the run's folder."""
        return Settings(
            state=self.folder,
            database=self.dsn,
            warehouse=str(self.folder / "warehouse"),
            input_roots=(str(self.folder),),
            output_roots=(str(self.folder),),
        )

    @cached_property
    def database(self) -> Database:
        """Return connections as a job has them."""
        return Database.of(self.settings)

    @property
    def spark(self) -> SparkSession:
        """Return the session that all figures share. The line of a figure that asks for it says the
        options of its JVM."""
        self.said["jvm"] = options_of(self._session)
        return self._session

    @cached_property
    def _session(self) -> SparkSession:
        return self.new_session() if self.new_session else job_session(self.folder)

    def frame(self, name: StreamName, order: str) -> DataFrame:
        """Return all events of a stream."""
        planned = self.database.snapshot(lambda c: plan_of_stream(c, name))
        return frame_of(self.spark, self.settings, Slices(str(name), *planned), order=order)

    def close(self) -> None:
        """Close the connections and the session, if there are any."""
        if "database" in self.__dict__:
            self.database.dispose()
        if "_session" in self.__dict__:
            self._session.stop()

    def durable(self, on: bool) -> None:
        """Let commits from now on survive a crash of the machine, as in an installation, or not."""
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            self.server.psql(f"ALTER SYSTEM SET {name} = {'on' if on else 'off'}")
        self.server.psql("SELECT pg_reload_conf()")

    @property
    def many_streams(self) -> int:
        """Return how many streams count as many for the jobs that serve all streams."""
        return 10_000 if self.full else 1000

    def filled(self, name: str, sql: str, **parameters: Any) -> Database:
        """Return the database of this name. The first call makes it, and fills it by these
        statements."""
        if name not in self._filled:
            self.server.psql(
                f"CREATE DATABASE {name} OWNER weir_owner; "
                f"GRANT CONNECT ON DATABASE {name} TO weir_app;"
            )
            migrate.upgrade(self.server.dsn(name, "weir_owner"))
            dsn = self.server.dsn(name, "weir_app")
            self._filled[name] = Database(dsn, patience=60.0, connect_patience=10.0)
            self.at_end.callback(self._filled[name].dispose)
            # While nothing is committed there, for jobs that look whether the warehouse is theirs.
            check_warehouse_ownership(self._filled[name], self.warehouse_of(name))
            in_bulk(self._filled[name], sql, **parameters)
            self.server.psql("VACUUM ANALYZE", name)
        return self._filled[name]

    def warehouse_of(self, name: str) -> str:
        """Return the warehouse of a filled database."""
        return str(self.folder / f"warehouse of {name}")

    def number(self) -> int:
        """Return a number that was not given out before in this run."""
        return next(self._numbers)


def in_bulk(database: Database, sql: str, **parameters: Any) -> None:
    """Run statements in one transaction, each with the parameters that it names."""

    def work(connection: Any) -> None:
        for statement in sql.split(";"):
            if statement.strip():
                used = {k: v for k, v in parameters.items() if f":{k}" in statement}
                connection.execute(text(statement), used)

    database.transaction(work)


@contextmanager
def bench_setting(folder: Path, *, full: bool) -> Iterator[Setting]:
    """Yield the setting of one run, with a migrated database on a throw-away server."""
    with throw_away_postgres() as server, ExitStack() as at_end:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        setting = Setting(folder, full, server.dsn("weir", "weir_app"), server, at_end)
        try:
            check_warehouse_ownership(setting.database, setting.settings.warehouse)
            yield setting
        finally:
            setting.close()
