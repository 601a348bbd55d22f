-- A dump that is restored is another database, or has other tables; a server that was restored to a
-- time, or was a standby, is on another timeline. The checkpoint after a promotion takes its time, but
-- what recovery has reached says the timeline at once.
CREATE OR REPLACE FUNCTION weir_internal.incarnation() RETURNS text
LANGUAGE sql STABLE
RETURN (
    SELECT concat_ws('/', s.system_identifier,
        greatest(c.timeline_id, r.min_recovery_end_timeline), d.oid,
        'weir_internal.installation'::regclass::oid)
    FROM pg_control_system() s, pg_control_checkpoint() c, pg_control_recovery() r, pg_database d
    WHERE d.datname = current_database());
COMMENT ON FUNCTION weir_internal.incarnation() IS 'The server, timeline, database and tables of this session. It changes with a restore, a move or a failover.';
