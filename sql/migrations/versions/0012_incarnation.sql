-- How often the warehouse was swept tells only a backup that is older than the last sweep.
ALTER TABLE weir.installation ADD COLUMN incarnation text;
-- As weir.incarnation has it, which is made after the tables.
UPDATE weir.installation SET incarnation = concat_ws(
    '/', s.system_identifier, greatest(c.timeline_id, r.min_recovery_end_timeline), d.oid,
    'weir.installation'::regclass::oid)
FROM pg_control_system() s, pg_control_checkpoint() c, pg_control_recovery() r, pg_database d
WHERE d.datname = current_database();
ALTER TABLE weir.installation ALTER COLUMN incarnation SET NOT NULL;
COMMENT ON COLUMN weir.installation.incarnation IS 'What weir.incarnation() said when the database was migrated or last recovered. Once it says something else, the database was restored from a backup, moved, or taken over by a standby.';

COMMENT ON COLUMN weir.reader_group.moved_at IS 'When its readers last committed a batch, or it was placed or became a subscriber, or the database was recovered.';
