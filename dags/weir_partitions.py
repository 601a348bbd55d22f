"""What Airflow starts whenever a stream is stated to be complete up to a later time: its hours and
days are announced, to the DAGs that wait for them."""

from weir.annex.partitions.announcing import partitions_dag

weir_partitions = partitions_dag()
