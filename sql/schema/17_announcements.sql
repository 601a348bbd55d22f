-- What an Airflow is to be told of (decision 75): the commit that changes a stream adds a row for each Airflow that
-- watches it, and the row goes when the event is in Airflow's database. Sessions only insert and delete rows of
-- announcement, and so no session waits for another.
CREATE TABLE weir_internal.watch (
    stream_name text NOT NULL,
    airflow text NOT NULL,
    kind text NOT NULL CHECK (kind ~ '^[a-z]{1,20}$'),
    since timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    announced_at timestamptz,
    announced_clock bigint,
    login name NOT NULL DEFAULT current_user,
    PRIMARY KEY (stream_name, airflow, kind)
);
COMMENT ON TABLE weir_internal.watch IS 'Which Airflow is told of which stream: of its events, or of what an annex announces. The stream need not exist yet.';
COMMENT ON COLUMN weir_internal.watch.stream_name IS 'scope/stream; whatever has this name is watched.';
COMMENT ON COLUMN weir_internal.watch.airflow IS 'The Airflow: the setting airflow_name of its triggerers.';
COMMENT ON COLUMN weir_internal.watch.kind IS 'events, or what an annex announces.';
COMMENT ON COLUMN weir_internal.watch.since IS 'When it began; what was committed before is not announced.';
COMMENT ON COLUMN weir_internal.watch.seen_at IS 'When a triggerer last said that a DAG is scheduled by it. weir_upkeep forgets what no triggerer has seen for 30 days.';
COMMENT ON COLUMN weir_internal.watch.announced_at IS 'Of events: when something of it was last known to be in the database of Airflow.';
COMMENT ON COLUMN weir_internal.watch.announced_clock IS 'Of events: the newest clock of what was announced.';
COMMENT ON COLUMN weir_internal.watch.login IS 'The login of the triggerer, whose Airflow it is: no other triggerer''s login says what it is told.';
CREATE INDEX watch_by_login ON weir_internal.watch (login, airflow);
CREATE INDEX watch_by_airflow ON weir_internal.watch (airflow, login);

CREATE TABLE weir_internal.announcement (
    airflow text NOT NULL,
    kind text NOT NULL,
    stream_name text NOT NULL,
    stream_id bigint NOT NULL,
    transaction_number bigint NOT NULL,
    PRIMARY KEY (airflow, kind, stream_name, transaction_number)
);
COMMENT ON TABLE weir_internal.announcement IS 'What is committed and not known to be in the database of an Airflow.';
COMMENT ON COLUMN weir_internal.announcement.airflow IS 'The Airflow that is to be told.';
COMMENT ON COLUMN weir_internal.announcement.kind IS 'As in watch.';
COMMENT ON COLUMN weir_internal.announcement.stream_name IS 'scope/stream, which never changes.';
COMMENT ON COLUMN weir_internal.announcement.stream_id IS 'The stream of the transaction.';
COMMENT ON COLUMN weir_internal.announcement.transaction_number IS 'What was committed; of a statement of completeness without an append, a number below 0: its clock.';
-- As 12_planning.sql says.
ALTER TABLE weir_internal.announcement ALTER COLUMN stream_id SET STATISTICS 0;
