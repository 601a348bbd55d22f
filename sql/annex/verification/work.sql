    UNION ALL
    SELECT 'stream_cuts', 'cuts are to be proven' WHERE 'stream_cuts' = ANY (in_jobs)
        AND (EXISTS (SELECT FROM weir_internal.unproven_cuts() u WHERE u.since < u.until)
             OR EXISTS (SELECT FROM weir_internal.cuts_proven_by_now()))
