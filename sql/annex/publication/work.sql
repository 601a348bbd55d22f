    UNION ALL
    SELECT 'upkeep', 'tables are behind their streams' FROM s WHERE 'upkeep' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.streams_to_publish(NULL) p
                    WHERE NOT p.wanted OR weir_internal.is_behind(p.stream_id, s.grace_period, s.compacted_grace))
