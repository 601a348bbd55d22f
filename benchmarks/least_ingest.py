"""The least that a program for spark-submit does to read a csv file and to write it as Parquet."""

import sys

from pyspark.sql import SparkSession

read, written = sys.argv[1:]
spark = SparkSession.builder.appName("least ingest").getOrCreate()
spark.read.csv(read, header=True, inferSchema=True).write.parquet(written)
