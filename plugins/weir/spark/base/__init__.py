"""What all work with Spark stands on: sessions, exact names and values, order, routing."""

import sys

# Spark names an archive of PySpark first, which each process compiles anew: rather its own files.
sys.path.sort(key=lambda one: one.startswith(sys.prefix) and one.endswith("/pyspark.zip"))
