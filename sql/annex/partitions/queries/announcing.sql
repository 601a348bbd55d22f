-- What is announced of hours and days.

-- name: due_partitions -> many
-- Return which hours and days of streams may be announced to an Airflow. If nothing is complete
-- (`until` is null), `since` and `bound` mean nothing.
-- null: until, late, across
SELECT * FROM due_partitions(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]))

-- name: announced_partitions -> none
-- Record that hours and days are in the database of an Airflow.
SELECT announced_partitions(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]),
    CAST(:untils AS bigint[]), CAST(:numbers AS jsonb), CAST(:left_out AS text[]))

-- name: watched_partitions -> many WatchedPartition
-- Return of which streams an Airflow wants hours or days.
SELECT kind, stream_name AS stream FROM watched_partition WHERE airflow = :airflow
