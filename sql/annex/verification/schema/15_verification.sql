CREATE TABLE weir_internal.verification (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    begun_at timestamptz NOT NULL,
    segment_id bigint NOT NULL,
    start_offset bigint NOT NULL,
    completed_at timestamptz,
    proven_clock bigint
);
COMMENT ON TABLE weir_internal.verification IS 'How far the files of each stream were verified: their contents bit by bit by weir_stream_cuts, or at once by weir_verify; and the footers of new ones.';
COMMENT ON COLUMN weir_internal.verification.begun_at IS 'When the last file was looked at.';
COMMENT ON COLUMN weir_internal.verification.segment_id IS 'The segment of the last file that was looked at; -1: the next file is the first one.';
COMMENT ON COLUMN weir_internal.verification.start_offset IS 'The first offset of that file.';
COMMENT ON COLUMN weir_internal.verification.completed_at IS 'When the last file of the stream was looked at; null if that never happened.';
COMMENT ON COLUMN weir_internal.verification.proven_clock IS 'The clock of the last commit of which weir_stream_cuts has looked at the footers; null: of none.';

CREATE TABLE weir_internal.found_damage (
    path text NOT NULL,
    kind text NOT NULL,
    stream_id bigint,
    segment_id bigint,
    start_offset bigint,
    events bigint,
    what text NOT NULL,
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (path, kind)
);
CREATE INDEX found_damage_by_stream ON weir_internal.found_damage (stream_id);
COMMENT ON TABLE weir_internal.found_damage IS 'What is not as it was recorded, until it is seen to be right again.';
COMMENT ON COLUMN weir_internal.found_damage.path IS 'The file, below the warehouse.';
COMMENT ON COLUMN weir_internal.found_damage.kind IS 'missing, size, unreadable, end, rows, commits, content, order, bytes, segment, offsets, unknown, renamed or garbage: see weir.damage.';
COMMENT ON COLUMN weir_internal.found_damage.stream_id IS 'The stream in whose folder it is; null in no stream''s.';
COMMENT ON COLUMN weir_internal.found_damage.segment_id IS 'The segment of its events; null for a file that nobody knows.';
COMMENT ON COLUMN weir_internal.found_damage.start_offset IS 'The offset of its first event.';
COMMENT ON COLUMN weir_internal.found_damage.events IS 'How many events it has as recorded.';
COMMENT ON COLUMN weir_internal.found_damage.what IS 'What is wrong, in words.';
COMMENT ON COLUMN weir_internal.found_damage.since IS 'When it was found first.';
COMMENT ON COLUMN weir_internal.found_damage.seen_at IS 'When it was found last.';
-- See 12_planning.sql.
ALTER TABLE weir_internal.verification ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.found_damage ALTER COLUMN stream_id SET STATISTICS 0;
