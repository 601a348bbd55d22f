UNION ALL
SELECT p.path, false FROM weir_internal.published_file p WHERE p.manifest IS NULL
UNION ALL
SELECT p.stream_id || '/_weir_iceberg/' || p.number || '/', true FROM weir_internal.publication p WHERE p.lease_until IS NOT NULL
