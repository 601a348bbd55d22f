-- What Airflow is told of all streams is no team's.
REVOKE INSERT, UPDATE, DELETE ON weir_internal.watched_partition FROM weir_team;
REVOKE EXECUTE ON FUNCTION weir_internal.due_partitions, weir_internal.announced_partitions FROM weir_team;
