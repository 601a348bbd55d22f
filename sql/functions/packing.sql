-- Entries of the time index become rows that stand for several (decision 74). Nothing of them is lost: whoever asks by
-- the functions of commits.sql gets the same answers. A row that is not full is filled up by what comes after it, once
-- that is at least a 32nd of it: so an entry is written about 32 times at most, and few are left that have rows of
-- their own. At least 4, so that the files of a short segment have at most 5 rows in all.
CREATE OR REPLACE FUNCTION weir_internal.to_pack(in_commits integer, in_most integer, OUT fewest integer, OUT fills boolean)
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT CASE WHEN f.fills THEN f.fewest ELSE 4 END, f.fills
    FROM (SELECT greatest(4, in_commits / 32) AS fewest,
                 coalesce(in_most - in_commits >= greatest(4, in_commits / 32), false) AS fills) f
$$;
COMMENT ON FUNCTION weir_internal.to_pack(integer, integer) IS 'How many commits are packed at least, and whether they fill up the last packed row of the segment, which has so many (null: there is none).';

CREATE OR REPLACE FUNCTION weir_internal.commits_to_pack(in_before bigint, in_most integer)
RETURNS TABLE (stream_id bigint, stream text, segment_id bigint, commits bigint, room integer)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp ROWS 1000
AS $$
    SELECT s.stream_id, s.stream_name, i.segment_id, i.commits, in_most - CASE WHEN w.fills THEN p.commits ELSE 0 END
    FROM weir_internal.stream s
    CROSS JOIN LATERAL (
        SELECT t.segment_id, count(*) AS commits FROM weir_internal.time_index t
        WHERE t.stream_id = s.stream_id AND t.clock < in_before GROUP BY t.segment_id HAVING count(*) >= 4 OFFSET 0) i
    LEFT JOIN LATERAL (
        SELECT p.commits FROM weir_internal.packed_commits p
        WHERE p.stream_id = s.stream_id AND p.segment_id = i.segment_id
        ORDER BY p.start_offset DESC LIMIT 1) p ON true
    CROSS JOIN LATERAL weir_internal.to_pack(p.commits, in_most) w
    WHERE s.state <> 'deleted' AND i.commits >= w.fewest
    ORDER BY s.stream_id, i.segment_id
$$;
COMMENT ON FUNCTION weir_internal.commits_to_pack(bigint, integer) IS 'Per segment how many commits before a clock can be packed, so many into a row, where it is worth while; and how many of them go into the first row.';

CREATE OR REPLACE FUNCTION weir_internal.pack_commits(
    in_stream_id bigint, in_segments bigint[], in_before bigint, in_most integer)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    segment bigint;
    l weir_internal.packed_commits;  -- the last row of the segment
    n weir_internal.packed_commits;  -- what comes after it
    whole boolean;
    w record;
    packed bigint := 0;
BEGIN
    PERFORM FROM weir_internal.lock_streams(array[in_stream_id], '{}', '{}');
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    FOREACH segment IN ARRAY in_segments LOOP
        SELECT * INTO l FROM weir_internal.packed_commits p
        WHERE p.stream_id = in_stream_id AND p.segment_id = segment
        ORDER BY p.start_offset DESC LIMIT 1;
        SELECT * INTO w FROM weir_internal.to_pack(l.commits, in_most);
        SELECT min(i.stream_name), min(i.start_offset), max(i.start_offset + i.events), max(i.start_byte + i.bytes),
               min(i.clock), max(i.clock), count(*), array_agg(i.start_offset ORDER BY i.start_offset),
               array_agg(i.start_byte ORDER BY i.start_offset), array_agg(i.clock ORDER BY i.start_offset),
               array_agg(i.transaction_number ORDER BY i.start_offset),
               array_agg(i.min_event_time ORDER BY i.start_offset),
               array_agg(i.max_event_time ORDER BY i.start_offset), array_agg(i.digest ORDER BY i.start_offset),
               bool_and(i.follows)
        INTO n.stream_name, n.start_offset, n.past, n.past_byte, n.first_clock, n.last_clock, n.commits, n.offsets,
             n.bytes_before, n.clocks, n.transaction_numbers, n.min_event_times, n.max_event_times, n.digests, whole
        FROM (
            SELECT t.*, t.start_offset = lag(t.start_offset + t.events, 1, coalesce(l.past, t.start_offset)) OVER w
                    AND t.start_byte = lag(t.start_byte + t.bytes, 1, coalesce(l.past_byte, t.start_byte)) OVER w
                    AND t.clock > lag(t.clock, 1, coalesce(l.last_clock, t.clock - 1)) OVER w AS follows
            FROM weir_internal.time_index t
            WHERE t.stream_id = in_stream_id AND t.segment_id = segment AND t.clock < in_before
            WINDOW w AS (ORDER BY t.start_offset)
            ORDER BY t.start_offset LIMIT in_most - CASE WHEN w.fills THEN l.commits ELSE 0 END) i;
        -- Another run may have packed them, or pruned them. Entries that do not follow one another stay as they are.
        CONTINUE WHEN n.commits < w.fewest OR NOT whole;
        DELETE FROM weir_internal.time_index i
        WHERE i.stream_id = in_stream_id AND i.segment_id = segment AND i.start_offset < n.past;
        IF w.fills THEN
            DELETE FROM weir_internal.packed_commits p
            WHERE p.stream_id = in_stream_id AND p.segment_id = segment AND p.start_offset = l.start_offset;
        ELSE
            l := NULL;
        END IF;
        INSERT INTO weir_internal.packed_commits (stream_id, stream_name, segment_id, start_offset, past, past_byte,
            first_clock, last_clock, commits, offsets, bytes_before, clocks, transaction_numbers, min_event_times,
            max_event_times, digests)
        SELECT in_stream_id, n.stream_name, segment, coalesce(l.start_offset, n.start_offset), n.past, n.past_byte,
               coalesce(l.first_clock, n.first_clock), n.last_clock, coalesce(l.commits, 0) + n.commits,
               l.offsets || n.offsets, l.bytes_before || n.bytes_before, l.clocks || n.clocks,
               l.transaction_numbers || n.transaction_numbers, weir_internal.unless_empty(
                   coalesce(l.min_event_times, array_fill(NULL::bigint, array[coalesce(l.commits, 0)])) || n.min_event_times),
               weir_internal.unless_empty(
                   coalesce(l.max_event_times, array_fill(NULL::bigint, array[coalesce(l.commits, 0)])) || n.max_event_times),
               weir_internal.unless_empty(
                   coalesce(l.digests, array_fill(NULL::bigint, array[coalesce(l.commits, 0)])) || n.digests);
        packed := packed + n.commits;
    END LOOP;
    RETURN packed;
END $$;
COMMENT ON FUNCTION weir_internal.pack_commits(bigint, bigint[], bigint, integer) IS 'Locks a stream and packs the commits to segments before a clock, in each segment into one row of so many. Returns how many commits.';

CREATE OR REPLACE FUNCTION weir_internal.unless_empty(in_values bigint[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN cardinality(array_remove(in_values, NULL)) > 0 THEN in_values END;
COMMENT ON FUNCTION weir_internal.unless_empty(bigint[]) IS 'Values, or null if all of them are.';
