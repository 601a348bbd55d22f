UNION ALL
SELECT 'weir_damaged_files', '{}', count(*) FROM weir.damage
