-- A reader may read files that became garbage while its batch is open, as long as it has a lease, and for a grace
-- period after that. A reader that returns later, or that takes the batch over, plans the batch again without
-- them. A lease that expired while Postgres was down counts from the start of the server: no reader could renew it.
CREATE OR REPLACE FUNCTION weir_internal.batches_protecting_files(in_grace double precision)
RETURNS TABLE (stream_id bigint, batch_id bigint, reader_group text, opened_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT gs.stream_id, b.batch_id, g.name, b.opened_at
    FROM weir_internal.reader_batch b
    JOIN weir_internal.reader r ON r.group_id = b.group_id AND r.reader_id = b.reader_id AND r.token = b.token
    JOIN weir_internal.reader_group g ON g.group_id = b.group_id
    JOIN weir_internal.reader_group_stream gs ON gs.group_id = b.group_id
    WHERE b.state = 'open'
      AND greatest(r.lease_until, pg_postmaster_start_time()) + in_grace * interval '1 second' > clock_timestamp()
    UNION ALL
    SELECT a.stream_id, v.version, a.name, v.started_at
    FROM weir_internal.adjunct_version v JOIN weir_internal.adjunct_store a USING (store_id)
    WHERE v.state = 'building'
      AND greatest(v.lease_until, pg_postmaster_start_time()) + in_grace * interval '1 second' > clock_timestamp()
$$;
COMMENT ON FUNCTION weir_internal.batches_protecting_files(double precision) IS 'The open batches, per stream of their group, whose readers have a lease or had one until so many seconds ago; and likewise the versions of adjunct stores that are being built. Sweeps keep the files that became garbage while they were open.';

-- A file that straddles the head may have several commits: who verifies or replaces it asks for all of them, from the
-- one with its first event. The commit of the event before the offset is the first that is kept, as sizes need it.
CREATE OR REPLACE FUNCTION weir_internal.commits_needed_from(in_stream_id bigint, in_cut jsonb)
RETURNS TABLE (segment_id bigint, event_offset bigint)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 32
AS $$
    SELECT c.segment_id, least(c.event_offset, (
        SELECT f.start_offset + 1 FROM weir_internal.data_file f
        WHERE f.stream_id = in_stream_id AND f.segment_id = c.segment_id ORDER BY f.start_offset LIMIT 1))
    FROM weir_internal.cut_entries(in_cut) c WHERE c.event_offset IS NOT NULL
$$;
COMMENT ON FUNCTION weir_internal.commits_needed_from(bigint, jsonb) IS 'Per segment of a cut at or before the head the offset after the first event whose commit is needed: the cut, or the one after the first event of the first file.';

-- The first epoch to keep is the oldest of: the newest creation epoch of the floor (the prefix sums of all later
-- cuts are in it or in a later epoch), the epochs in which segments of the floor were sealed, the epochs in which
-- open transactions began, and the last epoch before the history that is to be kept. A segment that was sealed by
-- then is part of no epoch that is kept.
CREATE OR REPLACE FUNCTION weir_internal.prune_below(in_stream_id bigint, in_floor jsonb, in_history double precision)
RETURNS TABLE (segments bigint, epochs bigint, index_entries bigint, decisions bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
DECLARE
    old CONSTANT timestamptz := clock_timestamp() - in_history * interval '1 second';
    old_clock CONSTANT bigint := weir_internal.time_clock(old);
    first_epoch integer;
    passed bigint[];
    more bigint;
BEGIN
    SELECT least(max(f.creation_epoch), min(f.sealed_epoch)) INTO first_epoch
    FROM weir_internal.cut_segments(in_stream_id, in_floor) f;
    first_epoch := least(first_epoch,
        (SELECT min(t.epoch) FROM weir_internal.transaction t
         WHERE t.stream_id = in_stream_id AND t.state = 'open'),
        coalesce((SELECT e.epoch FROM weir_internal.epoch e
                  WHERE e.stream_id = in_stream_id AND e.created_at <= old_clock
                  ORDER BY e.created_at DESC LIMIT 1), 0));
    SELECT coalesce(array_agg(g.segment_id), '{}') INTO passed
    FROM weir_internal.front(in_stream_id, in_floor) f CROSS JOIN weir_internal.segment g
    WHERE g.stream_name = (SELECT s.stream_name FROM weir_internal.stream s WHERE s.stream_id = in_stream_id)
      AND g.sealed_epoch <= first_epoch
      AND weir_internal.has_passed(f.keys, f.owners, f.offsets, g.key_low, g.segment_id, NULL);
    DELETE FROM weir_internal.time_index i
    WHERE i.stream_id = in_stream_id AND i.segment_id = ANY (passed);
    GET DIAGNOSTICS index_entries = ROW_COUNT;
    -- Packed commits are pruned as a whole.
    WITH gone AS (
        DELETE FROM weir_internal.packed_commits p
        WHERE p.stream_id = in_stream_id AND (p.segment_id = ANY (passed) OR p.last_clock < old_clock AND p.past <= (
            SELECT c.start_offset FROM weir_internal.commits_needed_from(in_stream_id, in_floor) f
            CROSS JOIN LATERAL weir_internal.commit_at(in_stream_id, f.segment_id, f.event_offset - 1) c
            WHERE f.segment_id = p.segment_id))
        RETURNING p.commits
    )
    SELECT index_entries + coalesce(sum(g.commits), 0) INTO index_entries FROM gone g;
    -- Of a partly passed segment, keep the entry that contains the floor, and all after it.
    DELETE FROM weir_internal.time_index i USING weir_internal.commits_needed_from(in_stream_id, in_floor) f
    WHERE i.stream_id = in_stream_id AND i.segment_id = f.segment_id AND i.clock < old_clock
      AND i.start_offset < (
          SELECT max(b.start_offset) FROM weir_internal.time_index b
          WHERE b.stream_id = in_stream_id AND b.segment_id = f.segment_id
            AND b.start_offset < f.event_offset);
    GET DIAGNOSTICS more = ROW_COUNT;
    index_entries := index_entries + more;
    DELETE FROM weir_internal.segment g WHERE g.stream_id = in_stream_id AND g.segment_id = ANY (passed);
    GET DIAGNOSTICS segments = ROW_COUNT;
    DELETE FROM weir_internal.epoch e WHERE e.stream_id = in_stream_id AND e.epoch < first_epoch;
    GET DIAGNOSTICS epochs = ROW_COUNT;
    DELETE FROM weir_internal.retention_decision d WHERE d.stream_id = in_stream_id AND d.decided_at < old
      AND d.lost = '{}'
      AND d.decided_at < (SELECT max(n.decided_at) FROM weir_internal.retention_decision n
                          WHERE n.stream_id = in_stream_id)
      AND (d.events = 0 OR d.decided_at < (  -- the last one that truncated says where the events are
          SELECT max(n.decided_at) FROM weir_internal.retention_decision n
          WHERE n.stream_id = in_stream_id AND n.events > 0));
    GET DIAGNOSTICS decisions = ROW_COUNT;
    DELETE FROM weir_internal.scale_decision d WHERE d.stream_id = in_stream_id AND d.decided_at < old
      AND d.decided_at < (SELECT max(n.decided_at) FROM weir_internal.scale_decision n
                          WHERE n.stream_id = in_stream_id);
    GET DIAGNOSTICS more = ROW_COUNT;
    decisions := decisions + more;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION weir_internal.prune_below(bigint, jsonb, double precision) IS 'Prunes the metadata of a locked stream that is below a cut and older than so many seconds. Returns how many rows were deleted.';
