    -- What is complete by then is not announced, as what was committed by then is not.
    INSERT INTO weir_internal.watched_partition (stream_name, airflow, kind, announced_until)
    SELECT n.stream, in_airflow, n.kind, weir_internal.partition_begin(n.kind, s.complete_until)
    FROM unnest(in_kinds, in_streams) AS n (kind, stream)
    LEFT JOIN weir_internal.stream s ON s.stream_name = n.stream AND s.state <> 'deleted'
    WHERE n.kind IN ('hours', 'days')
    ORDER BY n.stream, n.kind
    ON CONFLICT DO NOTHING;
