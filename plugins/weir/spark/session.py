"""The Spark session of a job, and settings that hold for one action only."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession


def session(name: str) -> SparkSession:
    """The session under spark-submit, or a new one; its master comes from outside."""
    return (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")  # routing keys and times mean UTC everywhere
        .getOrCreate()
    )


@contextmanager
def setting(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Session settings while one action runs; the session is the user's, so they are put back."""
    before = {key: spark.conf.get(key, None) for key in values}
    for key, value in values.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)
