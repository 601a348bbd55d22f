"""Hours and days of a stream's event time as partitions of Airflow, and deadlines of their runs."""
