-- Garbage that no sweep deletes. `erased_too`: not even files with erased events, before the grace period is over.
CREATE OR REPLACE VIEW weir_internal.held_garbage AS
SELECT NULL::bigint AS stream_id, NULL::text AS path, NULL::boolean AS erased_too WHERE false
-- each annex: held_garbage.sql
;
COMMENT ON VIEW weir_internal.held_garbage IS 'The garbage below the warehouse that no sweep deletes, because an annex needs it or has looked at it.';
COMMENT ON COLUMN weir_internal.held_garbage.stream_id IS 'As garbage has it, or 0 for none.';
COMMENT ON COLUMN weir_internal.held_garbage.path IS 'The file or folder.';
COMMENT ON COLUMN weir_internal.held_garbage.erased_too IS 'Whether files with erased events are kept, too, until the grace period is over.';

-- Files of the warehouse that no stream or store has. `open`: they are being written, and no backup knows them.
CREATE OR REPLACE VIEW weir_internal.annex_file AS
SELECT NULL::text AS path, NULL::boolean AS open WHERE false
-- each annex: annex_file.sql
;
COMMENT ON VIEW weir_internal.annex_file IS 'What annexes have written to the warehouse beside the files of streams and stores.';
COMMENT ON COLUMN weir_internal.annex_file.path IS 'The file or folder, below the warehouse.';
COMMENT ON COLUMN weir_internal.annex_file.open IS 'Whether it is being written.';
