"""Open an installation, once for each process and settings."""

import atexit
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.settings import Settings, load

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Say = Callable[[str], None]
StartSpark = Callable[[], "SparkSession"]  # returns the session, and may start it
MOST_KEPT = 4  # installations that `opened` keeps open: programs use one, tests one after another
log = logging.getLogger("weir")


def no_spark() -> "SparkSession":
    """Raise InvalidInput, where an installation was opened without a way to Spark."""
    raise InvalidInput(
        "spark_not_given",
        "this needs Spark, and the installation was opened without it; open it with weir.open(), "
        "or pass a session.",
    )


def remote_spark(settings: Settings) -> str:
    """Return the address of the Spark that jobs work with, if it is in another process: not under
    spark-submit, which starts one for this job alone."""
    return "" if "PYSPARK_GATEWAY_PORT" in os.environ else settings.spark


@dataclass(frozen=True)
class Installation:
    """What everything that works with an installation needs. Threads may share it.

    `source`: who works with it: a DAG run and task, or the name of a program. `say`: takes lines of
    progress. `start_spark`: returns the session of Spark, and may start it.
    """

    settings: Settings
    database: Database
    source: str = "program"
    say: Say = log.info
    start_spark: StartSpark = no_spark

    @property
    def spark(self) -> "SparkSession":
        """The session of Spark, which is started when it is first used. Raises InvalidInput if
        there can be none."""
        return self.start_spark()

    def close(self) -> None:
        """Close its connections for good. Whoever uses it later is refused."""
        self.database.close()


_lock = threading.Lock()
_kept: OrderedDict[Settings, Database] = OrderedDict()


def shared_database(settings: Settings | None = None) -> tuple[Settings, Database]:
    """Return settings (None: those of jobs, of WEIR_CONFIG or `weir.toml`) and the database that
    all of this process share who name the same ones.

    Its connections are closed when the process ends. A forked process gets connections of its own.
    """
    settings = settings or load()
    with _lock:
        database = _kept.pop(settings, None) or Database.of(settings)
        _kept[settings] = database
        surplus = [_kept.popitem(last=False)[1] for _ in range(len(_kept) - MOST_KEPT)]
    for one in surplus:
        one.dispose()  # not closed: another thread may be using it
    return settings, database


def close_shared() -> None:
    """Close the connections of all shared databases. Who asks for one gets a new one."""
    with _lock:
        databases = list(_kept.values())
        _kept.clear()
    for one in databases:
        one.dispose()


def _forget() -> None:
    """Forget, in a forked process, what belongs to the other one, whose threads may hold the
    lock."""
    global _lock
    _lock = threading.Lock()
    _kept.clear()


atexit.register(close_shared)
os.register_at_fork(after_in_child=_forget)
