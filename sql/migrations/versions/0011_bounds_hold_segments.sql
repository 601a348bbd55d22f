-- Which segments an open batch reads is said by its bounds. A mark at each segment said the same again:
-- as many rows changed when a batch was opened as when it was committed.
ALTER TABLE weir.reader_group_segment DROP COLUMN batch_id;

-- Each stream of a group is a group's.
ALTER TABLE weir.reader_group_segment DROP CONSTRAINT reader_group_segment_group_id_fkey;
