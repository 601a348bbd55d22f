"""An installation for each test, on the Spark session that all share."""

import pytest
from pyspark.sql import SparkSession

from tests.spark.installation import Installation
from weir.database.connection import Database
from weir.settings import Settings


@pytest.fixture
def weir(spark: SparkSession, database: Database, settings: Settings) -> Installation:
    """An empty installation."""
    return Installation(spark, database, settings)
