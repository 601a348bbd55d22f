-- A stream that is published is a table whose snapshots name the stream's own files (decision 88). What the catalogue of
-- such tables says are views over these rows, so a commit of a publication is one transaction here.
CREATE TABLE weir_internal.publication (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    number bigint NOT NULL,
    lease_until timestamptz,
    token text,
    sequence bigint NOT NULL DEFAULT 0,
    root text,
    metadata text,
    previous_metadata text,
    cut jsonb,
    clock bigint,
    head jsonb,
    events bigint NOT NULL DEFAULT 0,
    files bigint NOT NULL DEFAULT 0,
    compacted bigint NOT NULL DEFAULT 0,
    masked jsonb NOT NULL DEFAULT '{}',
    schema_version integer,
    published_at timestamptz,
    problem text,
    CONSTRAINT publication_is_whole CHECK (num_nulls(root, metadata, cut, clock, head, schema_version, published_at) IN (0, 7))
);
COMMENT ON TABLE weir_internal.publication IS 'How far a stream is published as a table, and who publishes it now. Without a row: never, or not any more.';
COMMENT ON COLUMN weir_internal.publication.number IS 'A number like those of the stream''s transactions, which no transaction has: of the last one that published or tried to. Its folder is _weir_iceberg/<number>/ in that of the stream.';
COMMENT ON COLUMN weir_internal.publication.lease_until IS 'Until then it is at work; null: none is.';
COMMENT ON COLUMN weir_internal.publication.token IS 'What its try began with: whoever begins with it again gets the same number, as the answer was lost.';
COMMENT ON COLUMN weir_internal.publication.sequence IS 'The sequence number of the newest snapshot; 0: there is none.';
COMMENT ON COLUMN weir_internal.publication.root IS 'The address of the warehouse as its files have it. If the warehouse is elsewhere by now, the table is made anew.';
COMMENT ON COLUMN weir_internal.publication.metadata IS 'The path below the root of the file that describes the table; null: it was never published.';
COMMENT ON COLUMN weir_internal.publication.previous_metadata IS 'The one before.';
COMMENT ON COLUMN weir_internal.publication.cut IS 'The tail of the stream in the newest snapshot.';
COMMENT ON COLUMN weir_internal.publication.clock IS 'The clock of the stream then.';
COMMENT ON COLUMN weir_internal.publication.head IS 'Its head then.';
COMMENT ON COLUMN weir_internal.publication.events IS 'How many events the stream had had until then, truncated ones too.';
COMMENT ON COLUMN weir_internal.publication.files IS 'How many of its files the newest snapshot has.';
COMMENT ON COLUMN weir_internal.publication.compacted IS 'The number of its last compaction then; 0: there was none.';
COMMENT ON COLUMN weir_internal.publication.masked IS 'Per file that straddles the head, how many of its rows the snapshot leaves out.';
COMMENT ON COLUMN weir_internal.publication.schema_version IS 'The version of its columns then.';
COMMENT ON COLUMN weir_internal.publication.published_at IS 'When the newest snapshot was made.';
COMMENT ON COLUMN weir_internal.publication.problem IS 'Why the last run did not publish it; null if it did.';
ALTER TABLE weir_internal.publication ALTER COLUMN stream_id SET STATISTICS 0;

CREATE TABLE weir_internal.published_file (
    stream_id bigint NOT NULL REFERENCES weir_internal.publication,
    path text NOT NULL,
    manifest text,
    since bigint NOT NULL,
    until bigint,
    PRIMARY KEY (stream_id, path),
    CONSTRAINT published_file_in_order CHECK (since < until)
);
CREATE INDEX published_file_of_manifest ON weir_internal.published_file (stream_id, manifest) WHERE manifest IS NOT NULL;
CREATE INDEX published_file_ended ON weir_internal.published_file (stream_id, until) WHERE until IS NOT NULL;
COMMENT ON TABLE weir_internal.published_file IS 'The files that snapshots of a published table name. No sweep deletes one.';
COMMENT ON COLUMN weir_internal.published_file.path IS 'Its path below the warehouse.';
COMMENT ON COLUMN weir_internal.published_file.manifest IS 'Of a data file of the stream: the path of the manifest that lists it; null: the file is metadata of the table.';
COMMENT ON COLUMN weir_internal.published_file.since IS 'The sequence number of the first snapshot that names it.';
COMMENT ON COLUMN weir_internal.published_file.until IS 'That of the first later one that does not; null: the newest does.';
ALTER TABLE weir_internal.published_file ALTER COLUMN stream_id SET STATISTICS 0;
