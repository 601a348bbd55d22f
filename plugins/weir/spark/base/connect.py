"""Spark Connect: sessions whose JVM is in another process, and that PySpark reaches by gRPC.

There is no plan and no setting of Weir's own to speak with. So what must not depend on a session is
done in its Python workers, with pyarrow, by the code that needs no Spark at all.
"""

from dataclasses import replace

from weir.settings import Settings


def for_workers(settings: Settings) -> Settings:
    """Return settings for Spark's workers, without a way to Postgres, and without passwords."""
    return replace(settings, database="", metrics_token="")
