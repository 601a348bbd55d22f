-- What is hidden from whoever asks, for the policies of roles.sql. A view, and not a function that returns all of it: the
-- planner probes an index for a few rows, and makes a hash of it for many, and the statements of functions look up few.
CREATE OR REPLACE VIEW weir_internal.hidden_stream AS
SELECT s.stream_id FROM weir_internal.stream s
WHERE s.owner IS NOT NULL AND s.owner NOT IN (SELECT weir_internal.own_roles());
COMMENT ON VIEW weir_internal.hidden_stream IS 'The streams of owners that the login is no member of.';

-- Whoever sees a stream sees who reads it, because that decides what is kept.
CREATE OR REPLACE VIEW weir_internal.hidden_group AS
SELECT g.group_id FROM weir_internal.reader_group g
WHERE (g.owner IS NULL OR g.owner NOT IN (SELECT weir_internal.own_roles()))
  AND EXISTS (SELECT FROM weir_internal.reader_group_stream o WHERE o.group_id = g.group_id)
  AND NOT EXISTS (
      SELECT FROM weir_internal.reader_group_stream o JOIN weir_internal.stream s USING (stream_id)
      WHERE o.group_id = g.group_id AND (s.owner IS NULL OR s.owner IN (SELECT weir_internal.own_roles())));
COMMENT ON VIEW weir_internal.hidden_group IS 'The reader groups of others that read nothing but streams that are hidden from the login.';

CREATE OR REPLACE VIEW weir_internal.hidden_store AS
SELECT a.store_id FROM weir_internal.adjunct_store a JOIN weir_internal.hidden_stream h USING (stream_id);
COMMENT ON VIEW weir_internal.hidden_store IS 'The adjunct stores of streams that are hidden from the login.';
COMMENT ON COLUMN weir_internal.hidden_stream.stream_id IS 'The stream.';
COMMENT ON COLUMN weir_internal.hidden_group.group_id IS 'The group.';
COMMENT ON COLUMN weir_internal.hidden_store.store_id IS 'The store.';
