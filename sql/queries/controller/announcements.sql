-- What an Airflow is to be told of.

-- name: watch -> none
-- Begin to announce streams to an Airflow, or say that it still wants that.
SELECT watch_streams(:airflow, CAST(:kinds AS text[]), CAST(:streams AS text[]))

-- name: to_announce -> many
-- Return what is to be announced to an Airflow, but what is `idle`.
-- null: transactions, events, bytes, cut, epoch, runs
-- type: cut = dict[str, int | str]
SELECT kind, stream, transactions, events, bytes, cut, epoch, runs
FROM to_announce(:airflow, CAST(:idle AS text[]))

-- name: announced -> none
-- Record that transactions are in the database of an Airflow.
SELECT announced(:airflow, CAST(:streams AS text[]), CAST(:numbers AS bigint[]))

-- name: forget -> many
-- Stop announcing what no triggerer has seen for `after` seconds, and return it.
WITH gone AS (
    DELETE FROM watch WHERE seen_at < clock_timestamp() - :after * interval '1 s'
    RETURNING airflow, kind, stream_name
), told AS (
    DELETE FROM announcement a USING gone g WHERE a.airflow = g.airflow
      AND a.kind = g.kind AND a.stream_name = g.stream_name
)
SELECT kind || ' of ' || stream_name || ' to ' || airflow
FROM gone ORDER BY stream_name, airflow, kind
