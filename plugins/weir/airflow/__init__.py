"""Weir in Airflow: the operator, the forms and the assets. Imports no pyspark."""
