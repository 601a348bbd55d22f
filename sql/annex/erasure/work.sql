    UNION ALL
    SELECT 'upkeep', 'certificates can be signed' FROM s WHERE 'upkeep' = ANY (in_jobs)
        AND EXISTS (SELECT FROM weir_internal.certificates_to_sign() c
                    WHERE NOT EXISTS (SELECT FROM weir_internal.erasure_waits(c.streams, s.grace_period)))
