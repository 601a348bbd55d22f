UNION ALL
SELECT p.stream_id, p.path, true FROM weir_internal.published_file p
