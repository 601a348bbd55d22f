-- Key ranges that are pinned to readers.

ALTER TABLE weir.reader ADD COLUMN label text NOT NULL DEFAULT '';
COMMENT ON COLUMN weir.reader.label IS 'What pins name it by, the same in every run: as given, else the map index of its task; empty without either.';

CREATE TABLE weir.reader_group_pin (
    group_id bigint NOT NULL,
    stream_id bigint NOT NULL,
    key_low double precision NOT NULL CHECK (key_low >= 0),
    key_high double precision NOT NULL CHECK (key_high <= 1),
    label text NOT NULL CHECK (label <> ''),
    PRIMARY KEY (group_id, stream_id, key_low),
    FOREIGN KEY (group_id, stream_id) REFERENCES weir.reader_group_stream ON DELETE CASCADE,
    CHECK (key_low < key_high)
);
COMMENT ON TABLE weir.reader_group_pin IS 'Keys of a stream that readers of a label read, whenever one of them is there. Those of a stream are disjoint.';
COMMENT ON COLUMN weir.reader_group_pin.group_id IS 'The group.';
COMMENT ON COLUMN weir.reader_group_pin.stream_id IS 'The stream.';
COMMENT ON COLUMN weir.reader_group_pin.key_low IS 'Where the range begins (inclusive).';
COMMENT ON COLUMN weir.reader_group_pin.key_high IS 'Where it ends (exclusive).';
COMMENT ON COLUMN weir.reader_group_pin.label IS 'The label of the readers.';

ALTER TABLE weir.reader_group_pin ALTER COLUMN stream_id SET STATISTICS 0;  -- see 0005
