"""The installation that programs with a Spark session share, who open none themselves."""

from pyspark.sql import SparkSession

from weir.installation.opened import Installation, shared_database
from weir.spark.base.session import check_session


def shared(spark: SparkSession, source: str) -> Installation:
    """Return the installation with the settings that jobs have: those of the file that WEIR_CONFIG
    names, or of `weir.toml`. Raises InvalidInput for what is no session."""
    check_session(spark)
    return Installation(*shared_database(), source=source, start_spark=lambda: spark)
