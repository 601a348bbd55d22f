"""Spark Connect: sessions whose JVM is in another process, and that PySpark reaches by gRPC.

There is no plan of Weir's own to speak with. So what must not depend on a user's session is done in
its Python workers, with pyarrow, by the code that needs no Spark at all.
"""

import atexit
import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder
from pyspark.sql.connect.client.retries import DefaultPolicy
from pyspark.sql.connect.session import SparkSession as Connected

from weir.errors import Unavailable
from weir.spark.base.calls_apart import CallsApart

_PORT = 15002  # of a server that names none
_TRIES = 6  # of a call that gets no answer: for about a minute, in place of ten
# A server that is frozen is found after six minutes: it does not let itself be asked more often.
_STILL_THERE = {"grpc.keepalive_time_ms": 330_000, "grpc.keepalive_timeout_ms": 30_000}
_APART = {"spark.sql.artifact.isolation.enabled": "true"}  # code that a session sends is its own
# What PySpark sets with a remote session: then its functions make columns of Connect.
_MODE = "SPARK_CONNECT_MODE_ENABLED"
_before = list[str | None]()  # what it was before the first session here


class _Open(NamedTuple):
    """A session, of which it is a copy (itself: of none), and with which settings."""

    session: SparkSession
    parent: SparkSession
    settings: Mapping[str, str]


_open = list[_Open]()
_PATIENCE = 10.0  # seconds in which a server must take a connection: PySpark itself tries for long


def connected(remote: str, settings: Mapping[str, str]) -> SparkSession:
    """Return a new session with these settings of a server (sc://host:port). It ends with this
    process at the latest. Raises Unavailable if the server can't be reached."""
    where = urlsplit(remote)
    address = where.hostname or "127.0.0.1", where.port or _PORT
    try:
        socket.create_connection(address, _PATIENCE).close()
    except OSError as error:
        raise Unavailable(
            "spark_unavailable",
            f"the Spark of the setting spark, {address[0]}:{address[1]}, can't be reached "
            f"({error.strerror or error}); start it (`weir up` does), or leave the setting empty, "
            "and each job starts its own.",
        ) from None
    first: Any = Connected(connection=channel_to(remote))
    try:
        _patient(first)
        first.conf._set_all({**settings, **_APART}, silent=True)
        made = first.cloneSession()  # a session asks at its beginning whether its code is apart
    finally:
        _stop(first)
    if not _open:
        _before[:] = [os.environ.get(_MODE)]
    os.environ[_MODE] = "1"
    Connected._set_default_and_active_session(made)
    return _kept(made, made, settings)


def channel_to(remote: str) -> DefaultChannelBuilder:
    """Return what opens channels to a server. The token of the environment is for the server that
    is named there, if one is: a connection of Airflow may name another, which must not get it."""
    made = DefaultChannelBuilder(remote, list(_STILL_THERE.items()))
    if (os.environ.get("WEIR_SPARK") or remote) != remote:
        made.set(made.PARAM_TOKEN, made.getDefault(made.PARAM_TOKEN, None))
    made.add_interceptor(CallsApart())
    return made


def cloned(spark: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with these settings: a job's own if that has them, or else a copy, the same
    one each time, which ends with the session, or with the process. Spark starts a Python for each
    that runs functions."""
    for one in _open:
        if one.parent is spark and one.settings == settings:
            return one.session
    made: Any = spark.cloneSession()  # type: ignore[attr-defined]  # only over Connect
    made.conf._set_all(dict(settings), silent=False)
    return _kept(made, spark, settings)


def end(spark: SparkSession) -> None:
    """End a session with its copies, and what the server still does for them."""
    for one in [one for one in _open if one.parent is spark]:
        if one.session is not spark:
            end(one.session)
        _open.remove(one)
        _stop(one.session)
    if not _open and _before:
        before = _before.pop()
        if before is None:
            os.environ.pop(_MODE, None)
        else:
            os.environ[_MODE] = before


def _stop(session: SparkSession) -> None:
    client = session.client
    client.set_retry_policies([])
    for step in (session.interruptAll, session.stop):
        # The server ends those that nobody asks anything.
        with contextlib.suppress(PySparkException, ValueError):
            step()
    # When it is deleted it closes again, and while Python ends that waits for ever.
    client.close = lambda: None  # type: ignore[method-assign]


def _patient(made: SparkSession) -> None:
    made.client.set_retry_policies([DefaultPolicy(max_retries=_TRIES)])


def _kept(made: SparkSession, parent: SparkSession, settings: Mapping[str, str]) -> SparkSession:
    _patient(made)
    vars(made)["release_session_on_close"] = True  # a copy lacks it, and can't be stopped without
    # What is registered last is called first, before what PySpark does for each session: it asks
    # a server that may be gone, and waits for a channel that is closed.
    atexit.unregister(end_all)
    atexit.register(end_all)
    _open.append(_Open(made, parent, settings))
    return made


def end_all() -> None:
    """End all sessions of this process."""
    while _open:
        end(_open[0].parent)
