"""Weir in Airflow: the operator, the forms, the assets, readers as mapped tasks, and OpenLineage.

Imports no pyspark.
"""
