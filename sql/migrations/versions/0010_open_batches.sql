-- A batch and the marks of its segments are written by one statement, and a batch is pruned only after
-- its commit, which takes them away. To check each mark took a third of the time to open a batch.
ALTER TABLE weir.reader_group_segment DROP CONSTRAINT reader_group_segment_group_id_batch_id_fkey;

-- Whether something was truncated that a group has not read is looked at once for each head.
ALTER TABLE weir.reader_group_stream ADD COLUMN head_seen jsonb;
COMMENT ON COLUMN weir.reader_group_stream.head_seen IS 'The last head of the stream below which no position was found to lie; null before the first look.';
