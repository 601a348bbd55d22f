CREATE OR REPLACE VIEW weir.adjunct_versions AS
SELECT a.name AS adjunct_store, v.version, v.state, v.kind, v.base, v.definition, v.cut,
       weir_internal.clock_time(v.clock) AS complete_to, weir_internal.clock_time(v.complete_since) AS complete_since,
       weir_internal.clock_time(v.history_from) AS history_from,
       v.layout, v.row_count, v.bytes, v.events, v.upserts, v.deletes, v.null_keys, v.failed_rows, v.lost_events,
       v.builder, v.attempt, v.lease_until, v.started_at, v.published_at,
       v.published_at - v.started_at AS build_time, v.superseded_at, v.ended_at, v.fields
FROM weir_internal.adjunct_version v JOIN weir_internal.adjunct_store a USING (store_id);
COMMENT ON VIEW weir.adjunct_versions IS 'The versions of each adjunct store, also those that are being built, have expired or were abandoned: what was built when, by whom, and from what.';
COMMENT ON COLUMN weir.adjunct_versions.adjunct_store IS 'scope/name.';
COMMENT ON COLUMN weir.adjunct_versions.complete_to IS 'All events up to this time are included, and none after it.';
COMMENT ON COLUMN weir.adjunct_versions.complete_since IS 'When the oldest event was committed that was there when it, or the first of its bases, was rebuilt; null: the whole stream was.';
COMMENT ON COLUMN weir.adjunct_versions.history_from IS 'It has the changes after this time up to its own; null: it has no history.';
COMMENT ON COLUMN weir.adjunct_versions.build_time IS 'How long it took from its beginning, with all attempts.';

CREATE OR REPLACE VIEW weir.adjunct_stores AS
SELECT a.name AS adjunct_store, s.stream_name AS stream, a.layout, a.bootstrap, a.missing, a.patience, a.null_key,
       a.on_error, a.on_gap, a.keep_versions * interval '1 second' AS keep_versions,
       a.history * interval '1 second' AS history, g.time_out * interval '1 second' AS time_out,
       a.definition, d.key, d.key_type, d.value, d.value_columns, d.delete_when, a.created_at,
       n.version, weir_internal.clock_time(n.clock) AS complete_to, n.row_count, n.bytes,
       l.unread_events AS events_behind, l.waiting AS time_behind,
       (SELECT count(*) FROM weir_internal.adjunct_version v
        WHERE v.store_id = a.store_id AND v.state = 'published') AS versions,
       b.builder AS building, s.state = 'deleted' AS stream_deleted, a.error, a.failed_at
FROM weir_internal.adjunct_store a
JOIN weir_internal.stream s USING (stream_id)
JOIN weir_internal.reader_group g ON g.group_id = a.group_id
JOIN weir_internal.adjunct_definition d ON d.store_id = a.store_id AND d.definition = a.definition
LEFT JOIN weir.lag l ON l.reader_group = g.name
LEFT JOIN weir_internal.adjunct_version b ON b.store_id = a.store_id AND b.state = 'building'
LEFT JOIN LATERAL (
    SELECT v.* FROM weir_internal.adjunct_version v WHERE v.store_id = a.store_id AND v.state = 'published'
    ORDER BY v.version DESC LIMIT 1) n ON true;
COMMENT ON VIEW weir.adjunct_stores IS 'The adjunct stores: how they are defined, their newest version, and how far it is behind the stream.';
COMMENT ON COLUMN weir.adjunct_stores.adjunct_store IS 'scope/name.';
COMMENT ON COLUMN weir.adjunct_stores.layout IS 'How consumers join it: broadcast, partitioned, or auto by the size of the version.';
COMMENT ON COLUMN weir.adjunct_stores.keep_versions IS 'For how long a version is kept after a newer one was published.';
COMMENT ON COLUMN weir.adjunct_stores.history IS 'For how long changes are kept for as-of joins; null: none are kept.';
COMMENT ON COLUMN weir.adjunct_stores.time_out IS 'How long no version may be published, though there are events for it, before retention stops waiting for the store; null: it waits for ever.';
COMMENT ON COLUMN weir.adjunct_stores.definition IS 'The number of its newest definition.';
COMMENT ON COLUMN weir.adjunct_stores.created_at IS 'When it was defined.';
COMMENT ON COLUMN weir.adjunct_stores.version IS 'Its newest version; null before the first.';
COMMENT ON COLUMN weir.adjunct_stores.complete_to IS 'The newest version has all events up to this time, and none after it.';
COMMENT ON COLUMN weir.adjunct_stores.row_count IS 'How many keys the newest version has.';
COMMENT ON COLUMN weir.adjunct_stores.bytes IS 'The bytes of its files.';
COMMENT ON COLUMN weir.adjunct_stores.events_behind IS 'How many events of the stream it does not have yet.';
COMMENT ON COLUMN weir.adjunct_stores.time_behind IS 'How long ago the oldest of these was committed.';
COMMENT ON COLUMN weir.adjunct_stores.versions IS 'How many versions are kept.';
COMMENT ON COLUMN weir.adjunct_stores.building IS 'Who builds the next version now; null: nobody.';
COMMENT ON COLUMN weir.adjunct_stores.stream_deleted IS 'Whether its stream was deleted, so that there will be no further version.';

CREATE OR REPLACE VIEW weir.adjunct_pins AS
SELECT a.name AS adjunct_store, p.version, b.group_name AS reader_group, p.batch_id, b.state AS batch_state,
       weir_internal.clock_time(p.clock) AS complete_to, weir_internal.clock_time(p.since) AS since,
       CASE WHEN p.pinned_at IS NULL THEN 'preparing' WHEN p.version IS NULL THEN 'empty' ELSE 'pinned' END AS state,
       p.pinned_at
FROM weir_internal.adjunct_pin p
JOIN weir_internal.adjunct_store a ON a.store_id = p.store_id
JOIN weir_internal.reader_batch b ON b.group_id = p.group_id AND b.batch_id = p.batch_id;
COMMENT ON VIEW weir.adjunct_pins IS 'Which version of each adjunct store a batch is, or was, read with. It protects the version while the batch is open.';
COMMENT ON COLUMN weir.adjunct_pins.adjunct_store IS 'scope/name.';
COMMENT ON COLUMN weir.adjunct_pins.reader_group IS 'The group that reads the batch.';
COMMENT ON COLUMN weir.adjunct_pins.batch_id IS 'The batch of the group.';
COMMENT ON COLUMN weir.adjunct_pins.version IS 'The version; null until one is there, and for an empty table.';
COMMENT ON COLUMN weir.adjunct_pins.state IS 'preparing: no version is pinned yet; pinned; or empty: there was no version, so the batch joins an empty table.';
COMMENT ON COLUMN weir.adjunct_pins.pinned_at IS 'When it was decided what the batch is read with; null while it is being prepared.';
COMMENT ON COLUMN weir.adjunct_pins.batch_state IS 'open, committed, abandoned or split.';
COMMENT ON COLUMN weir.adjunct_pins.complete_to IS 'What the version had to be complete to.';
COMMENT ON COLUMN weir.adjunct_pins.since IS 'The oldest time at which the batch asks for a value; null: it asks only for the newest.';
