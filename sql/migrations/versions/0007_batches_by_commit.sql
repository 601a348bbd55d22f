-- How fast a group reads is seen in its batches of the last hour, however many there were before.
CREATE INDEX reader_batch_by_commit ON weir.reader_batch (group_id, committed_at)
    WHERE state = 'committed';
