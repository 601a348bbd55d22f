-- What the views give instead of ids and clocks: names and times. Each expression is the body of the
-- function that the views call (segment_name, clock_time), into which Postgres puts it; an index on the
-- function would go whenever the functions are created anew.
-- Not unique: to create a stream, sessions that come at the same time meet in the index that is.
CREATE INDEX stream_by_name ON weir.stream ((scope || '/' || name)) WHERE state <> 'deleted';

CREATE INDEX segment_by_name ON weir.segment
    (((segment_id & 4294967295)::text || '.' || (segment_id >> 32)::text), stream_id);
CREATE INDEX segment_by_shard ON weir.segment (stream_id, (creation_epoch / 1000));

-- The last ten rows of a stream are the last ten entries of an index only where that begins with what
-- people write for the stream: Postgres does not know that a name has one id.
ALTER TABLE weir.epoch ADD COLUMN stream_name text;
COMMENT ON COLUMN weir.epoch.stream_name IS 'scope/stream, which never changes.';
UPDATE weir.epoch e SET stream_name = s.scope || '/' || s.name
FROM weir.stream s WHERE s.stream_id = e.stream_id;
ALTER TABLE weir.epoch ALTER COLUMN stream_name SET NOT NULL;
ALTER TABLE weir.epoch ALTER COLUMN stream_name SET STATISTICS 0;  -- see 0005
CREATE UNIQUE INDEX epoch_by_name ON weir.epoch (stream_name, epoch);
CREATE INDEX epoch_by_name_and_time ON weir.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'));
CREATE INDEX epoch_by_chunk ON weir.epoch (stream_name, (epoch / 1000));
CREATE INDEX first_epoch_by_chunk ON weir.epoch (stream_name, (epoch / 1000))
    WHERE epoch % 1000 = 0;
CREATE INDEX first_epoch_by_time ON weir.epoch
    (stream_name, (('epoch'::timestamp + created_at * interval '1 microsecond') AT TIME ZONE 'UTC'))
    WHERE epoch % 1000 = 0;

ALTER TABLE weir.transaction ADD COLUMN stream_name text;
COMMENT ON COLUMN weir.transaction.stream_name IS 'scope/stream, which never changes.';
UPDATE weir.transaction t SET stream_name = s.scope || '/' || s.name
FROM weir.stream s WHERE s.stream_id = t.stream_id;
ALTER TABLE weir.transaction ALTER COLUMN stream_name SET NOT NULL;
ALTER TABLE weir.transaction ALTER COLUMN stream_name SET STATISTICS 0;
CREATE UNIQUE INDEX transaction_by_name ON weir.transaction (stream_name, transaction_number);
DROP INDEX weir.transaction_by_clock;
CREATE INDEX transaction_by_name_and_time ON weir.transaction
    (stream_name, (('epoch'::timestamp + clock * interval '1 microsecond') AT TIME ZONE 'UTC'));

CREATE INDEX request_by_object ON weir.request (object, finished_at);
