"""Weir: a durable, elastic stream store on Airflow, PySpark, Postgres and Parquet.

Import contract (kept by tests/test_import_contract.py): this package imports neither airflow nor
pyspark; `weir.spark` may import pyspark, `weir.airflow` may import airflow, and nothing else may.
"""
