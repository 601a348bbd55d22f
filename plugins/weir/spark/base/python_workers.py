"""Where the Python processes of Spark's executors look for the modules of functions."""

import os
from collections.abc import Sequence

from pyspark.sql import SparkSession


def search(spark: SparkSession, folders: Sequence[str]) -> None:
    """Let the workers of functions that are called from now on search folders for modules, beside
    what they search anyway. What a function calls for each row is imported there, by its name."""
    environment = spark.sparkContext.environment
    known = environment.get("PYTHONPATH", "").split(os.pathsep)
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*folders, *filter(None, known)]))
