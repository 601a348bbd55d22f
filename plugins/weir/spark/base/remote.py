"""Sessions of a Spark Connect server, one for each job."""

import contextlib
import socket
from typing import Any
from urllib.parse import urlsplit

from weir.errors import Unavailable

_PATIENCE = 10.0  # seconds for a server to answer that listens
# PySpark tries a call again for ten minutes, and waits for that at the end of a process, too. What
# is longer away than this minute has forgotten the session.
_RETRIES = {"max_retries": 8, "max_backoff": 15_000}


def remote_session(remote: str) -> Any:
    """Return a new session of the server at an address. Raises Unavailable if nothing listens
    there."""
    from pyspark.sql.connect.client.retries import DefaultPolicy
    from pyspark.sql.connect.session import SparkSession

    where = urlsplit(remote)
    try:
        socket.create_connection((where.hostname, where.port or 15002), _PATIENCE).close()
    except OSError as error:
        raise Unavailable(
            "spark_unavailable",
            f"there is no Spark at {where.hostname}:{where.port or 15002} "
            f"({error.strerror or error}); start it, or try again when it is there.",
        ) from None
    session = SparkSession.builder.remote(remote).create()
    session.client.set_retry_policies([DefaultPolicy(**_RETRIES)])  # type: ignore[arg-type]
    return session


def end_session(spark: Any) -> None:
    """End a session, and what runs in it. A server that is gone has ended it."""
    from pyspark.sql.connect.client.retries import DefaultPolicy

    spark.client.set_retry_policies([DefaultPolicy(max_retries=2)])
    with contextlib.suppress(Exception):
        spark.interruptAll()
    with contextlib.suppress(Exception):
        spark.stop()
