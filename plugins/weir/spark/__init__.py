"""Streams as Spark DataFrames: appending, reading, consuming. Imports no airflow."""
