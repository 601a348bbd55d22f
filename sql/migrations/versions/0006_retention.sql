-- What retention needs beyond consumption.

ALTER TABLE weir.stream
    ADD COLUMN retain_min_age bigint CHECK (retain_min_age > 0),
    ADD COLUMN retain_max_age bigint CHECK (retain_max_age >= coalesce(retain_min_age, 1)),
    ADD COLUMN retain_min_bytes bigint CHECK (retain_min_bytes > 0),
    ADD COLUMN retain_max_bytes bigint CHECK (retain_max_bytes >= coalesce(retain_min_bytes, 1)),
    ADD COLUMN cuts_every bigint CHECK (cuts_every > 0),
    ADD COLUMN retention_every bigint CHECK (retention_every > 0);
COMMENT ON COLUMN weir.stream.retain_min_age IS 'Seconds; what is younger is kept, whoever has consumed it. Null: no such limit.';
COMMENT ON COLUMN weir.stream.retain_max_age IS 'Seconds; what is older is deleted, whoever has not consumed it. Null: no such limit.';
COMMENT ON COLUMN weir.stream.retain_min_bytes IS 'So many of the newest bytes are kept, whoever has consumed them. Null: no such limit.';
COMMENT ON COLUMN weir.stream.retain_max_bytes IS 'What goes beyond so many bytes is deleted, whoever has not consumed it. Null: no such limit.';
COMMENT ON COLUMN weir.stream.cuts_every IS 'The least seconds between two cuts of the retention set; null: every run.';
COMMENT ON COLUMN weir.stream.retention_every IS 'The least seconds between two decisions; null: every run.';
ALTER TABLE weir.stream ADD COLUMN retained_at timestamptz;
COMMENT ON COLUMN weir.stream.retained_at IS 'When retention last decided.';

-- Two lists of what is to be looked at, so that a run over streams of which nothing is to be done
-- reads nothing of them. Rows are only added and deleted: nobody waits for anybody.
CREATE TABLE weir.moved_stream (stream_id bigint NOT NULL);
COMMENT ON TABLE weir.moved_stream IS 'A row for each time that a tail moved since its stream''s last record in the retention set.';
COMMENT ON COLUMN weir.moved_stream.stream_id IS 'The stream.';

CREATE TABLE weir.retention_due (
    stream_id bigint NOT NULL,
    due_at timestamptz NOT NULL
);
CREATE INDEX retention_due_by_time ON weir.retention_due (due_at);
CREATE INDEX retention_due_by_stream ON weir.retention_due (stream_id);
COMMENT ON TABLE weir.retention_due IS 'When retention may decide something else about a stream: what it rests on has changed, or time will have passed.';
COMMENT ON COLUMN weir.retention_due.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.retention_due.due_at IS 'From when on.';
INSERT INTO weir.moved_stream SELECT stream_id FROM weir.stream WHERE state = 'active';
INSERT INTO weir.retention_due SELECT stream_id, clock_timestamp() FROM weir.stream WHERE state = 'active';

CREATE INDEX stream_cut_by_size ON weir.stream_cut (stream_id, bytes, recorded_at);

ALTER TABLE weir.retention_decision
    ADD COLUMN overtaken text[] NOT NULL DEFAULT '{}',
    ADD COLUMN left_out text[] NOT NULL DEFAULT '{}',
    ADD COLUMN lost jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN weir.retention_decision.rule IS 'The rule that chose, see docs/retention.md: consumed, min_age, min_bytes, max_age, max_bytes; or why there is nothing to do: no_rule, nothing_consumed, too_little, behind_head.';
COMMENT ON COLUMN weir.retention_decision.overtaken IS 'The subscribers that have not released all that a maximum truncated.';
COMMENT ON COLUMN weir.retention_decision.left_out IS 'The subscribers that had timed out, so that they held nothing back.';
COMMENT ON COLUMN weir.retention_decision.lost IS 'Per subscriber that had not read all that was truncated: how many events it lost.';

-- Subscribers.
ALTER TABLE weir.reader_group
    ADD COLUMN release text NOT NULL DEFAULT 'automatic' CHECK (release IN ('automatic', 'manual')),
    ADD COLUMN time_out bigint CHECK (time_out > 0);
COMMENT ON COLUMN weir.reader_group.release IS 'automatic: each checkpoint releases what it has passed; manual: only what is released by hand.';
COMMENT ON COLUMN weir.reader_group.time_out IS 'Seconds without activity of its readers after which a subscriber with unread events holds nothing back any more; null: never.';
COMMENT ON COLUMN weir.reader_group.moved_at IS 'When its readers last committed a batch, or it was placed or became a subscriber.';

ALTER TABLE weir.installation ADD COLUMN tide bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN weir.installation.tide IS 'How often the warehouse was swept. It is in the warehouse''s mark, too: a database that knows of fewer was restored from a backup.';
COMMENT ON COLUMN weir.garbage.reason IS 'truncated, aborted, fenced, abandoned (a batch that was reset or deleted with its group), deleted (with its stream), unknown (found after a restore) or rejected (copied to <stream>.rejected).';

-- Transactions are kept as long as their stream, epochs are not: only those of open ones are.
ALTER TABLE weir.transaction DROP CONSTRAINT transaction_stream_id_epoch_fkey;

-- The groups that have moved since their last automatic checkpoint are found without looking at all.
ALTER TABLE weir.reader_group ADD COLUMN checkpointed_at timestamptz NOT NULL DEFAULT '-infinity';
CREATE INDEX reader_group_moved ON weir.reader_group (group_id) WHERE moved_at > checkpointed_at;
COMMENT ON COLUMN weir.reader_group.checkpointed_at IS 'When the periodic checkpoint last looked at it.';

-- As for the other tables (see 0005).
ALTER TABLE weir.moved_stream ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir.retention_due ALTER COLUMN stream_id SET STATISTICS 0;
