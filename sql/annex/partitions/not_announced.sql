    UNION ALL
    SELECT NULL, NULL, false, p.left_out FROM weir_internal.watched_partition p
    WHERE p.airflow = w.airflow AND p.kind = w.kind AND p.stream_name = w.stream_name
      AND p.left_out_at > clock_timestamp() - interval '30 days'
