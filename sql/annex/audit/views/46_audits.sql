CREATE OR REPLACE VIEW weir.audits AS
SELECT a.number, a.started_at, a.ended_at, a.since, a.files, a.proven, a.streams, a.reader_groups, a.lost_events
FROM weir_internal.audit a;
COMMENT ON VIEW weir.audits IS 'The audits of the ledger (weir_audit), and whether each has proven it.';

CREATE OR REPLACE VIEW weir.counter_examples AS
SELECT c.kind, s.stream_name AS stream, g.name AS reader_group, c.what
FROM weir_internal.counter_example c
LEFT JOIN weir_internal.stream s USING (stream_id)
LEFT JOIN weir_internal.reader_group g USING (group_id);
COMMENT ON VIEW weir.counter_examples IS 'What the last audit of the ledger found not to be as it must; empty if it has proven it.';
COMMENT ON COLUMN weir.counter_examples.stream IS 'The stream; null if it is about none.';
COMMENT ON COLUMN weir.counter_examples.reader_group IS 'The reader group; null if it is about none.';
