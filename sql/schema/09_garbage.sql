CREATE TABLE weir_internal.garbage (
    root text NOT NULL,
    path text NOT NULL,
    stream_id bigint,
    reason text NOT NULL,
    bytes bigint NOT NULL DEFAULT 0,
    rows bigint,
    end_hash bigint,
    garbage_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (root, path)
);
CREATE INDEX garbage_by_time ON weir_internal.garbage (garbage_since);
COMMENT ON TABLE weir_internal.garbage IS 'Files and folders that nothing refers to any more, until a sweep deletes them; folders of writers are deleted twice.';
COMMENT ON COLUMN weir_internal.garbage.root IS 'Empty for the warehouse, else the output root.';
COMMENT ON COLUMN weir_internal.garbage.path IS 'Its path below the root; that of a folder ends in /.';
COMMENT ON COLUMN weir_internal.garbage.stream_id IS 'The stream whose open batches may still need it.';
COMMENT ON COLUMN weir_internal.garbage.reason IS 'truncated, aborted, fenced (by another attempt, or as its batch was given up), deleted (with its stream), unknown (found after a restore), expired (a version of an adjunct store, or metadata of a published table), rejected (copied to <stream>.rejected), compacted (another file has its events), erased (another file has its events, but for those that were erased: it goes without a grace period) or swept (a folder that was deleted, and will be once more, with what its writer wrote since).';
COMMENT ON COLUMN weir_internal.garbage.bytes IS 'Its size, if known, else 0.';
COMMENT ON COLUMN weir_internal.garbage.rows IS 'How many rows it has; null unless end_hash is known.';
COMMENT ON COLUMN weir_internal.garbage.end_hash IS 'The hash of its end, as of data_file: a sweep keeps it if its footer is another one; null: it is not compared, because nothing was recorded, or a person has let it go.';
COMMENT ON COLUMN weir_internal.garbage.garbage_since IS 'When it became garbage; of one that was swept: when that was.';
