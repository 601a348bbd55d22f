"""Spark Connect: sessions whose JVM is in another process, and that PySpark reaches by gRPC.

There is no plan and no setting of Weir's own to speak with. So what must not depend on a session is
done in its Python workers, with pyarrow, by the code that needs no Spark at all.
"""

from dataclasses import replace
from typing import Any

from weir.errors import InvalidInput
from weir.settings import Settings
from weir.spark.base.session import WRITING


def for_workers(settings: Settings) -> Settings:
    """Return settings for Spark's workers, without a way to Postgres, and without passwords."""
    return replace(settings, database="", metrics_token="")


def check_writing(spark: Any) -> None:
    """Check that a session of Spark Connect writes Parquet as Weir does, as Weir can't set that in
    a session that others use. Raises InvalidInput with what to set."""
    for key, wanted in WRITING.items():
        found = spark.conf.get(key, None)
        if found is not None and str(found).lower() != wanted.lower():
            raise InvalidInput(
                "session_setting_differs",
                f"the session of Spark Connect has {key} = {found}, which changes what is in "
                f"files; set it to {wanted}.",
            )
