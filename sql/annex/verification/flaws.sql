UNION ALL
SELECT d.stream, 'damaged file' FROM weir.damage d
