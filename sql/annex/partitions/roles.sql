-- What Airflow is told of all streams is no team's.
REVOKE INSERT, UPDATE, DELETE ON weir_internal.watched_partition FROM weir_team;
REVOKE EXECUTE ON FUNCTION weir_internal.due_partitions, weir_internal.announced_partitions FROM weir_team;
-- It is seen by whoever sees that the stream is watched.
ALTER TABLE weir_internal.watched_partition ENABLE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS everything ON weir_internal.watched_partition;
DROP POLICY IF EXISTS of_teams ON weir_internal.watched_partition;
CREATE POLICY everything ON weir_internal.watched_partition TO weir_jobs USING (true);
CREATE POLICY of_teams ON weir_internal.watched_partition TO weir_team, weir_reader USING (EXISTS (
    SELECT FROM weir_internal.watch w
    WHERE (w.stream_name, w.airflow, w.kind) = (watched_partition.stream_name, watched_partition.airflow, watched_partition.kind)));
