"""What the figures share: a throw-away Postgres, a warehouse, a Spark session, made when needed."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pyspark.sql import SparkSession

from weir.database import migrate
from weir.database.connection import Database
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.settings import Settings
from weir.warehouse.ownership import check_warehouse_ownership


@dataclass
class Setting:
    """One run of the benchmarks."""

    folder: Path
    full: bool
    dsn: str
    server: EmbeddedPostgres
    at_end: ExitStack  # closes what figures share
    _numbers: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000)))

    @cached_property
    def settings(self) -> Settings:
        """Settings of an installation below the run's folder."""
        return Settings(
            state=self.folder,
            database=self.dsn,
            warehouse=str(self.folder / "warehouse"),
            input_roots=(str(self.folder),),
            output_roots=(str(self.folder),),
        )

    @cached_property
    def database(self) -> Database:
        """Connections as a job has them."""
        return Database.of(self.settings)

    @cached_property
    def spark(self) -> SparkSession:
        """A session as for real work: the optimising compiler, enough memory."""
        session = (
            SparkSession.builder.master("local[2]")
            .appName("weir benchmarks")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.driver.memory", "4g")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
        return session

    def durable(self, on: bool) -> None:
        """Whether commits from now on survive a crash of the machine, as in an installation."""
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            self.server.psql(f"ALTER SYSTEM SET {name} = {'on' if on else 'off'}")
        self.server.psql("SELECT pg_reload_conf()")

    def number(self) -> int:
        """A number that was not given out before in this run."""
        return next(self._numbers)


@contextmanager
def bench_setting(folder: Path, *, full: bool) -> Iterator[Setting]:
    """A migrated database on a throw-away server, for one run."""
    with throw_away_postgres() as server, ExitStack() as at_end:
        migrate.upgrade(server.dsn("weir", "weir_owner"))
        logins.make_users(server)
        setting = Setting(folder, full, server.dsn("weir", "weir_app"), server, at_end)
        try:
            check_warehouse_ownership(setting.database, setting.settings.warehouse)
            yield setting
        finally:
            if "database" in setting.__dict__:
                setting.database.dispose()
            if "spark" in setting.__dict__:
                setting.spark.stop()
