"""One local installation: a state folder, its Postgres with Weir's schema, and its Airflow."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from weir import settings
from weir.database import migrate
from weir.local import logins, processes
from weir.local.airflow_environment import EXAMPLES, weir_environment
from weir.local.airflow_stack import AirflowStack
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.spark_address import is_named
from weir.local.spark_server import IDLE, SparkServer
from weir.source_tree import beside


class Installation:
    """All processes and data of the state folder `state`. Each start uses what already runs.

    `examples`: whether Airflow has the example DAGs from its next start on; None: as before.
    """

    def __init__(
        self,
        state: Path,
        *,
        dags: Path | None = None,
        durable: bool = True,
        examples: bool | None = None,
    ) -> None:
        self.postgres = EmbeddedPostgres(state, durable=durable)
        self.state = self.postgres.state.path
        self.airflow = AirflowStack(self.postgres.state, dags or beside("dags"), examples)
        self.spark = SparkServer(self.postgres.state)

    def start(self) -> None:
        """Start Postgres and Airflow. If that fails or is interrupted, stop what was started."""
        with self._undone_if_it_fails():
            self.start_postgres()
            self.start_spark()
            self.start_airflow()

    def start_postgres(self) -> None:
        """Start Postgres, migrate the schema `weir`, and create all logins."""
        with self._undone_if_it_fails():
            self.postgres.start()
            with self.postgres.state.lock("logins"):
                logins.make_owners(self.postgres)
                migrate.upgrade(self.postgres.dsn("weir", "weir_owner"))
                logins.make_users(self.postgres)

    def start_spark(self, idle: float = 0.0) -> None:
        """Start the Spark server, if one is wanted and the settings name no other. `idle`: after so
        many seconds without work it ends by itself."""
        environ, before = {**os.environ, **self.environment()}, self.spark.port
        if not before or settings.load(environ).spark != self.spark.address:
            return
        self.spark.start(environ, idle)
        if self.spark.port != before:
            self.airflow.stop()  # its tasks look for it at the other port

    def spark_for(self, known: settings.Settings) -> settings.Settings:
        """Return the settings of a job of a terminal, for which the server is started, if they name
        it and it does not run; nobody stops it, so it ends when it is idle."""
        if not is_named(self.postgres.state, known):
            return known
        if not self.spark.running():
            self.start_spark(IDLE)
        return replace(known, spark=self.spark.address)

    def start_airflow(self) -> None:
        """Start Airflow and wait until it is healthy. Call `start_postgres` before."""
        self.make_data_folders()
        if self.airflow.examples:
            tables = (EXAMPLES / "tables.sql").read_text()
            self.postgres.psql(f"SET ROLE weir_owner;\n{tables}", database="weir")
        self.airflow.start()

    def stop(self) -> None:
        """Stop everything. The data is kept."""
        with processes.uninterrupted():
            self.airflow.stop()
            self.spark.stop()
            self.postgres.stop()

    def folders(self) -> list[Path]:
        """Return the folders with its data: the state folder and, for root, the database's folder
        beside it."""
        home = self.postgres.home
        return [self.state] if home.is_relative_to(self.state) else [self.state, home]

    def remove(self) -> None:
        """Stop everything and delete all data: streams, metadata and Airflow's history."""
        self.stop()
        for folder in self.folders():
            shutil.rmtree(folder, ignore_errors=True)

    def environment(self) -> dict[str, str]:
        """Return the variables that a process, such as a spark-submit by hand or a psql, needs in
        addition."""
        return weir_environment(self.postgres.state)

    def make_data_folders(self) -> None:
        """Make the folders of the settings that are inside the state folder. Others belong to
        somebody else."""
        known = settings.load(dict(os.environ) | self.environment())
        for folder in (known.warehouse, *known.input_roots, *known.output_roots):
            if "://" not in folder and Path(folder).is_relative_to(self.state):
                self.postgres.state.folder(str(Path(folder).relative_to(self.state)))

    @contextmanager
    def _undone_if_it_fails(self) -> Iterator[None]:
        before = self.postgres.running()
        try:
            yield
        except BaseException:
            if not before:  # Airflow needs Postgres, so it did not run either
                self.stop()
            raise
