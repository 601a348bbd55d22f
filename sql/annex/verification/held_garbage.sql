UNION ALL
SELECT coalesce(d.stream_id, 0), d.path, false FROM weir_internal.found_damage d WHERE d.kind = 'garbage'
