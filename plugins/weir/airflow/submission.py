"""How a job is submitted: what its driver finds in its environment, and whether it is short."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NoReturn

from airflow.providers.common.compat.sdk import AirflowFailException, AirflowNotFoundException
from airflow.sdk import BaseHook, Connection

from weir.airflow.tasks import failing
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import give
from weir.operations.consumers import Process
from weir.operations.jobs import ACTIONS
from weir.reader_groups.groups.lag import read_lag
from weir.settings import Settings

SHORT_EVENTS = 1_000_000  # unread events up to which reading them is short


@contextlib.contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process for the block. A child gets them; a command line would show
    them."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def spark_connection(conn_id: str) -> Connection:
    """Return a connection of Spark. For one that does not exist, SparkSubmitHook silently uses
    YARN."""
    try:
        return BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        raise AirflowFailException(
            f"there is no connection {conn_id!r}; create it in Admin > Connections, of type Spark, "
            "with the master as its host."
        ) from None


def no_spark() -> NoReturn:
    """Raise InvalidInput, where a task runs without Spark."""
    raise InvalidInput(
        "spark_not_given",
        f"this needs Spark, and the task runs in the worker without it; {give(engine='spark')}.",
    )


def is_short(job: str, parsed: object, settings: Settings) -> bool:
    """Return whether a job with these arguments is over before Java's optimising compiler pays: it
    changes metadata, or reads few events."""
    if not isinstance(parsed, Process):
        return not ACTIONS[job].moves_data
    with failing(), Database.of(settings) as database:
        lag = read_lag(database, [parsed.reader_group])
    return sum(one.unread_events for one in lag) <= SHORT_EVENTS
