-- The oldest transaction of the server that has a number, of whatever database, if commits wait for it. What others do,
-- pg_stat_activity hides from most logins; pg_locks shows everybody who holds a number, and a commit's clock since when
-- it waits. The newest commits wait, so it is enough to look at some of these.
CREATE OR REPLACE VIEW weir.waiting_versions AS
SELECT w.commits, weir_internal.clock_time(w.first) AS waiting_since, l.pid,
       coalesce(a.datname, p.database)::text AS database,
       coalesce(a.usename, p.owner)::text AS login, p.gid AS prepared
FROM (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS number) o
CROSS JOIN LATERAL (
    SELECT count(*) AS commits, min(n.clock) AS first
    FROM (SELECT t.clock, t.final_after FROM weir_internal.transaction t WHERE t.clock IS NOT NULL
          ORDER BY t.clock DESC LIMIT 10000) n
    WHERE n.final_after > o.number AND n.final_after <= pg_snapshot_xmax(pg_current_snapshot())) w
LEFT JOIN pg_locks l ON l.locktype = 'transactionid' AND l.transactionid = o.number::xid AND l.mode = 'ExclusiveLock'
    AND l.granted
LEFT JOIN pg_stat_activity a ON a.pid = l.pid
LEFT JOIN pg_prepared_xacts p ON p.transaction = o.number::xid
WHERE w.commits > 0;
COMMENT ON VIEW weir.waiting_versions IS 'Which transaction, of any database of the server, keeps the newest commits from being versions (AT (VERSION) of DuckLake) until it ends. Mostly empty.';
COMMENT ON COLUMN weir.waiting_versions.commits IS 'How many commits wait for it, at most 10,000.';
COMMENT ON COLUMN weir.waiting_versions.waiting_since IS 'When the first of them was committed.';
COMMENT ON COLUMN weir.waiting_versions.pid IS 'The process of its session: SELECT pg_terminate_backend(pid) ends it. Null: it is prepared.';
COMMENT ON COLUMN weir.waiting_versions.database IS 'The database of that session.';
COMMENT ON COLUMN weir.waiting_versions.login IS 'Whose it is.';
COMMENT ON COLUMN weir.waiting_versions.prepared IS 'The name of a transaction that is prepared: COMMIT PREPARED or ROLLBACK PREPARED, in its database, ends it.';
