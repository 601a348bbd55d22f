CREATE TABLE weir_internal.hole (
    stream_id bigint NOT NULL,
    segment_id bigint NOT NULL,
    chunk bigint NOT NULL,
    events integer NOT NULL CHECK (events BETWEEN 1 AND 65536),
    offsets int4multirange NOT NULL,
    PRIMARY KEY (stream_id, segment_id, chunk),
    FOREIGN KEY (stream_id) REFERENCES weir_internal.stream
);
COMMENT ON TABLE weir_internal.hole IS 'The offsets whose events were erased, per 65,536 offsets of a segment. Kept as long as the stream.';
COMMENT ON COLUMN weir_internal.hole.segment_id IS 'The segment of the offsets.';
COMMENT ON COLUMN weir_internal.hole.chunk IS 'The number of the 65,536 offsets: 0 has those from 0 to 65535.';
COMMENT ON COLUMN weir_internal.hole.events IS 'How many of them have no event.';
COMMENT ON COLUMN weir_internal.hole.offsets IS 'Which, less the first offset of the chunk.';
ALTER TABLE weir_internal.hole ALTER COLUMN stream_id SET STATISTICS 0;

-- Whoever has salt and hashes tries short keys in no time, so nobody may read them (roles.sql): they are added to, and an
-- append to a stream that refuses gets them, by functions (erased_keys.sql).
CREATE TABLE weir_internal.erased_keys (
    stream_id bigint PRIMARY KEY REFERENCES weir_internal.stream,
    salt bytea NOT NULL CHECK (length(salt) = 32),
    hashes text[] NOT NULL,
    keys integer NOT NULL GENERATED ALWAYS AS (cardinality(hashes)) STORED
);
COMMENT ON TABLE weir_internal.erased_keys IS 'The routing keys that were erased from a stream, by salted hash. Kept as long as the stream.';
COMMENT ON COLUMN weir_internal.erased_keys.salt IS '32 random bytes, of this stream only.';
COMMENT ON COLUMN weir_internal.erased_keys.hashes IS 'Of each key the first 16 hexadecimal digits of SHA-256 of the salt and the key in UTF-8.';
COMMENT ON COLUMN weir_internal.erased_keys.keys IS 'How many they are. They only become more, so an append that was compared with fewer is not committed.';
ALTER TABLE weir_internal.erased_keys ALTER COLUMN stream_id SET STATISTICS 0;
