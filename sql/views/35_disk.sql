-- Small is what compaction takes for small by default: less than half of 128 MiB and of a million rows, and whole
-- between head and tail.
CREATE OR REPLACE VIEW weir.small_files AS
SELECT s.stream_name AS stream, f.files, f.small_files, f.segments, f.small_bytes, f.small_events,
       f.last_compacted, f.apart
FROM weir_internal.stream s CROSS JOIN LATERAL weir_internal.count_small_files(s.stream_id, NULL) f
WHERE s.state <> 'deleted';
COMMENT ON VIEW weir.small_files IS 'How many small files each stream has, which compaction may put together.';
COMMENT ON COLUMN weir.small_files.files IS 'All its files.';
COMMENT ON COLUMN weir.small_files.small_files IS 'Those with less than 64 MiB and 500,000 events, from the head on.';
COMMENT ON COLUMN weir.small_files.segments IS 'In how many segments they are; neighbours of one segment become one file.';
COMMENT ON COLUMN weir.small_files.small_bytes IS 'The size of the small files.';
COMMENT ON COLUMN weir.small_files.small_events IS 'The events in the small files.';
COMMENT ON COLUMN weir.small_files.last_compacted IS 'When files of it were last put together, as far as that is recorded.';
COMMENT ON COLUMN weir.small_files.apart IS 'Why none of them can be put together, by their columns, or as the last run has found; null if some could, or if nobody has looked since the last commit.';

CREATE OR REPLACE VIEW weir.compactions AS
SELECT c.stream_name AS stream, c.number, c.state, c.begun_at, c.ended_at, c.files_before, c.files_after, c.events,
       c.bytes_before, c.bytes_after
FROM weir_internal.compaction c;
COMMENT ON VIEW weir.compactions IS 'Which files were put together, and what that saved. Pruned after the setting job_history.';
COMMENT ON COLUMN weir.compactions.number IS 'The number in the names of its folder (_weir_tx), which no transaction has.';
COMMENT ON COLUMN weir.compactions.state IS 'open while it writes; done; or aborted.';
COMMENT ON COLUMN weir.compactions.events IS 'The events in the files.';

CREATE OR REPLACE VIEW weir.disk AS
SELECT 'events'::text AS kind, s.stream, s.stream AS name, s.bytes_retained AS bytes, NULL::timestamptz AS since,
       CASE WHEN s.state = 'sealed' THEN 'the stream is sealed: weir delete-stream, or weir truncate-stream'
            WHEN o.retain_max_age IS NULL AND o.retain_max_bytes IS NULL AND s.retention = 'keep'
            THEN 'retention is keep: another one (weir update-stream), or weir truncate-stream'
            ELSE 'retention is ' || s.retention || ': weir why says what holds the events' END AS freed_by
FROM weir.streams s JOIN weir_internal.stream o ON o.stream_id = s.stream_id
UNION ALL
SELECT 'garbage', g.stream, g.reason, sum(g.bytes)::bigint, min(g.garbage_since),
       CASE g.reason WHEN 'erased' THEN 'weir upkeep' ELSE 'weir upkeep, after the setting '
           || CASE g.reason WHEN 'compacted' THEN 'compacted_grace' ELSE 'grace_period' END END
       || coalesce((
           SELECT ', once batch ' || min(b.batch_id) || ' of ' || min(b.reader_group) || ' has ended'
           FROM weir_internal.stream s JOIN weir_internal.batches_protecting_files(0) b USING (stream_id)
           WHERE s.stream_name = g.stream AND b.opened_at <= max(g.garbage_since)
           HAVING count(*) > 0), '')
FROM weir.garbage_files g GROUP BY g.stream, g.reason
UNION ALL
SELECT 'adjunct store', s.stream_name, a.name, sum(f.bytes)::bigint, NULL,
       count(DISTINCT f.version) || ' versions wrote it: keep_versions and history of the store'
FROM weir_internal.adjunct_store a JOIN weir_internal.stream s USING (stream_id)
JOIN weir_internal.adjunct_file f USING (store_id)
GROUP BY s.stream_name, a.name
UNION ALL
SELECT 'staging', NULL, c.relname::text, pg_total_relation_size(c.oid), NULL,
       'the end of the batch, which drops the table, or weir upkeep'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'weir_staging' AND c.relkind = 'r'
UNION ALL
SELECT 'database', NULL, c.relname::text, pg_total_relation_size(c.oid), NULL,
       'the settings metadata_history and job_history, then VACUUM'
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'weir_internal' AND c.relkind = 'r';
COMMENT ON VIEW weir.disk IS 'What takes how much space, and what frees it: the events, garbage and adjunct stores of each stream, and the tables of the database. The sizes of Parquet outputs and of open appends are not known.';
COMMENT ON COLUMN weir.disk.kind IS 'events, garbage, adjunct store, staging (rows that a batch is about to write to a table) or database.';
COMMENT ON COLUMN weir.disk.stream IS 'Its stream; null for what belongs to none.';
COMMENT ON COLUMN weir.disk.name IS 'The stream, the reason why it is garbage, the adjunct store, or the table.';
COMMENT ON COLUMN weir.disk.bytes IS 'Its size, if known, else 0; of events and garbage in files, of tables with their indexes.';
COMMENT ON COLUMN weir.disk.since IS 'When the oldest of it became garbage; null for what is none.';
COMMENT ON COLUMN weir.disk.freed_by IS 'Which setting, command or event frees it.';
