CREATE OR REPLACE VIEW weir.pins AS
SELECT g.name AS reader_group, s.stream_name AS stream, p.key_low, p.key_high, p.label,
       array(SELECT r.reader_id FROM weir_internal.reader r
             WHERE r.group_id = p.group_id AND r.label = p.label ORDER BY r.reader_id) AS readers
FROM weir_internal.reader_group_pin p
JOIN weir_internal.reader_group g USING (group_id)
JOIN weir_internal.stream s USING (stream_id);
COMMENT ON VIEW weir.pins IS 'Which keys of a stream are pinned to which readers of a group.';
COMMENT ON COLUMN weir.pins.readers IS 'The readers with this label that have joined. If there are none, all other readers share the range.';
COMMENT ON COLUMN weir.pins.label IS 'The label that a reader''s task was given, else its map index.';
