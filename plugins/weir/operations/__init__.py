"""What every action is made of: descriptions of arguments, settings of forms, the runner of jobs.

An argument is described once, for its field in a form, its option in a terminal and its check.
Imports neither pyspark nor airflow: `weir.airflow` makes `Param`s of the descriptions, and the jobs
parse with them.
"""
