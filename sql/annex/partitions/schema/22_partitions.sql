-- Of what an Airflow watches, the hours and days of streams: up to where they are announced.
CREATE TABLE weir_internal.watched_partition (
    stream_name text NOT NULL,
    airflow text NOT NULL,
    kind text NOT NULL CHECK (kind IN ('hours', 'days')),
    announced_until bigint,
    left_out text,
    left_out_at timestamptz,
    PRIMARY KEY (stream_name, airflow, kind),
    FOREIGN KEY (stream_name, airflow, kind) REFERENCES weir_internal.watch ON DELETE CASCADE
);
COMMENT ON TABLE weir_internal.watched_partition IS 'Which hours or days of a stream an Airflow that wants them was told of.';
COMMENT ON COLUMN weir_internal.watched_partition.stream_name IS 'As in watch.';
COMMENT ON COLUMN weir_internal.watched_partition.airflow IS 'As in watch.';
COMMENT ON COLUMN weir_internal.watched_partition.kind IS 'hours or days: partitions by event time that are complete.';
COMMENT ON COLUMN weir_internal.watched_partition.announced_until IS 'All that end by this event time are announced, in microseconds since 1970 UTC; null: none yet.';
COMMENT ON COLUMN weir_internal.watched_partition.left_out IS 'Which hours or days with events were last not announced, because they are too far back, or too many of one run; null: none.';
COMMENT ON COLUMN weir_internal.watched_partition.left_out_at IS 'When that was.';
