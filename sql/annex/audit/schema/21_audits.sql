CREATE TABLE weir_internal.audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    started_at timestamptz NOT NULL,
    ended_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    since timestamptz,
    files boolean NOT NULL,
    proven boolean NOT NULL,
    streams bigint NOT NULL,
    reader_groups bigint NOT NULL,
    lost_events bigint NOT NULL
);
COMMENT ON TABLE weir_internal.audit IS 'The audits of the ledger, and whether each has proven it.';
COMMENT ON COLUMN weir_internal.audit.number IS 'A number that no other audit has.';
COMMENT ON COLUMN weir_internal.audit.started_at IS 'The moment that it looked at: all of its statements see it.';
COMMENT ON COLUMN weir_internal.audit.ended_at IS 'When it was recorded.';
COMMENT ON COLUMN weir_internal.audit.since IS 'Of an audit that went on from the last proven one: when that one looked. Null: everything was looked at.';
COMMENT ON COLUMN weir_internal.audit.files IS 'Whether it looked at the files of the warehouse, too.';
COMMENT ON COLUMN weir_internal.audit.proven IS 'Whether there is no counter-example.';
COMMENT ON COLUMN weir_internal.audit.streams IS 'How many streams there are.';
COMMENT ON COLUMN weir_internal.audit.reader_groups IS 'How many reader groups there are.';
COMMENT ON COLUMN weir_internal.audit.lost_events IS 'How many events subscribers lost, as the receipts say: these are named, and no counter-examples.';

CREATE TABLE weir_internal.counter_example (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    stream_id bigint,
    group_id bigint,
    what text NOT NULL
);
COMMENT ON TABLE weir_internal.counter_example IS 'What the last audit found not to be as it must.';
COMMENT ON COLUMN weir_internal.counter_example.number IS 'In the order in which they were found.';
COMMENT ON COLUMN weir_internal.counter_example.kind IS 'What it is, in one word; docs/audit.md lists them.';
COMMENT ON COLUMN weir_internal.counter_example.stream_id IS 'The stream; null if it is about none that exists.';
COMMENT ON COLUMN weir_internal.counter_example.group_id IS 'The reader group; null if it is about none that exists.';
COMMENT ON COLUMN weir_internal.counter_example.what IS 'What is not as it must be, in a sentence.';

CREATE TABLE weir_internal.audited_stream (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    clock bigint NOT NULL
);
COMMENT ON TABLE weir_internal.audited_stream IS 'Up to which clock of a stream an audit has proven everything: the next one goes on from there.';
COMMENT ON COLUMN weir_internal.audited_stream.clock IS 'The last clock of the stream at that time.';
-- See 12_planning.sql.
ALTER TABLE weir_internal.audited_stream ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.counter_example ALTER COLUMN stream_id SET STATISTICS 0;
