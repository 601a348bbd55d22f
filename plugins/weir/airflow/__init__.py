"""Weir in Airflow: the operator, forms and assets. Imports no pyspark."""
