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
