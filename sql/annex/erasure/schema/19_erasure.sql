CREATE TABLE weir_internal.erasure_request (
    request_id text PRIMARY KEY,
    stream_id bigint NOT NULL REFERENCES weir_internal.stream,
    stream_name text NOT NULL,
    requested_by text NOT NULL,
    reason text NOT NULL,
    asked jsonb NOT NULL,
    asked_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    stores jsonb NOT NULL DEFAULT '{}',
    outputs jsonb NOT NULL DEFAULT '{}',
    searched jsonb,
    remains jsonb,
    done_at timestamptz,
    certificate jsonb,
    certified_at timestamptz,
    CONSTRAINT erasure_request_done CHECK ((done_at IS NULL) = (searched IS NULL) AND (done_at IS NULL) = (remains IS NULL)),
    CONSTRAINT erasure_request_certified CHECK ((certificate IS NULL) = (certified_at IS NULL)
        AND (certified_at IS NULL OR done_at IS NOT NULL))
);
CREATE INDEX erasure_request_by_name ON weir_internal.erasure_request (stream_name, asked_at);
CREATE INDEX erasure_request_without_certificate ON weir_internal.erasure_request (request_id) WHERE certificate IS NULL;
COMMENT ON TABLE weir_internal.erasure_request IS 'Who asked for an erasure, of what, and the certificate of all that it erased. Never deleted.';
COMMENT ON COLUMN weir_internal.erasure_request.request_id IS 'The run that does it; erasures name it in their column asked.';
COMMENT ON COLUMN weir_internal.erasure_request.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.erasure_request.requested_by IS 'Who asked for it.';
COMMENT ON COLUMN weir_internal.erasure_request.reason IS 'Why, as they say.';
COMMENT ON COLUMN weir_internal.erasure_request.stores IS 'Per adjunct store how many rows of its files were erased.';
COMMENT ON COLUMN weir_internal.erasure_request.outputs IS 'Per output of a group how many rows were erased, in parts: by the hash of the path of a file, or of a table.';
COMMENT ON COLUMN weir_internal.erasure_request.asked IS 'What was asked: the salted hash of each key with its salt, or a condition without its values; never a key.';
COMMENT ON COLUMN weir_internal.erasure_request.asked_at IS 'When it began.';
COMMENT ON COLUMN weir_internal.erasure_request.searched IS 'The streams that were searched: an array of {stream, stream_id, by, columns, events}. Null until the events are out of their files.';
COMMENT ON COLUMN weir_internal.erasure_request.remains IS 'Where copies may be that it did not erase: an array of {what, name, why, until}.';
COMMENT ON COLUMN weir_internal.erasure_request.done_at IS 'When the events were out of the files of all streams.';
COMMENT ON COLUMN weir_internal.erasure_request.certificate IS 'The signed certificate; null while files with the events are left.';
COMMENT ON COLUMN weir_internal.erasure_request.certified_at IS 'When it was signed.';
ALTER TABLE weir_internal.erasure_request ALTER COLUMN stream_id SET STATISTICS 0;
ALTER TABLE weir_internal.erasure_request ALTER COLUMN stream_name SET STATISTICS 0;

-- The private key is read by jobs only (roles.sql).
CREATE TABLE weir_internal.signing_key (
    key_number integer PRIMARY KEY DEFAULT 1,
    public_key bytea NOT NULL CHECK (length(public_key) = 32),
    private_key bytea NOT NULL CHECK (length(private_key) = 32),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE weir_internal.signing_key IS 'The Ed25519 keys with which the installation signs certificates; the newest signs. Never deleted, because old certificates are checked with old keys.';
COMMENT ON COLUMN weir_internal.signing_key.key_number IS '1, and one more for each later key.';
COMMENT ON COLUMN weir_internal.signing_key.public_key IS 'The 32 bytes with which anybody checks a signature.';
COMMENT ON COLUMN weir_internal.signing_key.private_key IS 'The 32 bytes that sign. No reader, and no team, may read them.';
COMMENT ON COLUMN weir_internal.signing_key.made_at IS 'When it was made.';
