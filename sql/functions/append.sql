-- What an append asks and writes, as functions, because planning these statements costs several
-- times what running them does, and a function is planned once per session. The rules are in
-- weir.controller; the stream is locked before any of these is called.

-- The active segments of a locked stream by key range, as columns.
CREATE FUNCTION weir.active_tails(in_stream_id bigint)
RETURNS TABLE (ids bigint[], lows double precision[], highs double precision[], offsets bigint[],
               till bigint[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog ROWS 1
AS $$
BEGIN
    RETURN QUERY
    SELECT array_agg(t.segment_id ORDER BY g.key_low), array_agg(g.key_low ORDER BY g.key_low),
           array_agg(g.key_high ORDER BY g.key_low), array_agg(t.tail_offset ORDER BY g.key_low),
           array_agg(t.tail_bytes ORDER BY g.key_low)
    FROM weir.segment_tail t
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT s.key_low, s.key_high FROM weir.segment s
        WHERE s.stream_id = t.stream_id AND s.segment_id = t.segment_id OFFSET 0) g
    WHERE t.stream_id = in_stream_id;
END $$;
COMMENT ON FUNCTION weir.active_tails(bigint) IS 'For jobs: the active segments of a stream with their tails, as arrays.';

-- What a commit finds: its transaction, the schema, the active segments, and who holds an input.
CREATE FUNCTION weir.find_append(in_stream_id bigint, in_number bigint, in_version integer)
RETURNS TABLE (state text, attempt integer, epoch integer, clock bigint, events bigint,
               rejected bigint, bytes bigint, files integer, fields jsonb, ids bigint[],
               lows double precision[], highs double precision[], offsets bigint[], till bigint[],
               path text, holder bigint, source text, ended_at timestamptz)
LANGUAGE plpgsql STABLE SET search_path = pg_catalog ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.state, t.attempt, t.epoch, t.clock, t.events, t.rejected, t.bytes, t.files,
           (SELECT v.fields FROM weir.stream_schema v
            WHERE v.stream_id = in_stream_id AND v.version = in_version),
           a.ids, a.lows, a.highs, a.offsets, a.till, h.path, h.transaction_number, h.source,
           h.ended_at
    FROM weir.transaction t
    CROSS JOIN LATERAL weir.active_tails(in_stream_id) a
    LEFT JOIN LATERAL (
        SELECT o.path, o.transaction_number, c.source, c.ended_at
        FROM weir.transaction_input i
        JOIN weir.transaction_input o ON o.stream_id = i.stream_id AND o.path = i.path
            AND o.transaction_number <> i.transaction_number
        JOIN weir.transaction c ON c.stream_id = o.stream_id
            AND c.transaction_number = o.transaction_number AND c.state = 'committed'
        WHERE i.stream_id = in_stream_id AND i.transaction_number = in_number
          AND t.state = 'open' AND NOT t.append_again
        ORDER BY o.path, o.transaction_number LIMIT 1) h ON true
    WHERE t.stream_id = in_stream_id AND t.transaction_number = in_number;
END $$;
COMMENT ON FUNCTION weir.find_append(bigint, bigint, integer) IS 'For jobs: what a commit finds.';

-- What a beginning finds: the transaction of this identity if there is one, the schema, and the
-- active segments.
CREATE FUNCTION weir.find_batch(in_stream_id bigint, in_writer_id text, in_batch_id text,
                                in_version integer)
RETURNS TABLE (transaction_number bigint, state text, fingerprint text, attempt integer,
               clock bigint, events bigint, rejected bigint, bytes bigint, files integer,
               fields jsonb, ids bigint[], lows double precision[], highs double precision[])
LANGUAGE plpgsql STABLE SET search_path = pg_catalog ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.transaction_number, t.state, t.fingerprint, t.attempt, t.clock, t.events, t.rejected,
           t.bytes, t.files,
           (SELECT v.fields FROM weir.stream_schema v
            WHERE v.stream_id = in_stream_id AND v.version = in_version),
           a.ids, a.lows, a.highs
    FROM weir.active_tails(in_stream_id) a
    LEFT JOIN weir.transaction t ON t.stream_id = in_stream_id AND t.writer_id = in_writer_id
        AND t.batch_id = in_batch_id;
END $$;
COMMENT ON FUNCTION weir.find_batch(bigint, text, text, integer) IS 'For jobs: what the beginning of an append finds.';

-- Open a transaction, or take it over under the next attempt.
CREATE FUNCTION weir.open_append(
    in_stream_id bigint, in_number bigint, in_writer_id text, in_batch_id text,
    in_fingerprint text, in_attempt integer, in_epoch integer, in_lease double precision,
    in_append_again boolean, in_source text, in_paths text[], in_sizes bigint[])
RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
BEGIN
    UPDATE weir.stream s
    SET next_transaction_number = greatest(s.next_transaction_number, in_number + 1)
    WHERE s.stream_id = in_stream_id;
    INSERT INTO weir.transaction (stream_id, transaction_number, writer_id, batch_id, fingerprint,
        state, attempt, epoch, opened_at, lease_until, append_again, source)
    VALUES (in_stream_id, in_number, in_writer_id, in_batch_id, in_fingerprint, 'open', in_attempt,
        in_epoch, clock_timestamp(), clock_timestamp() + in_lease * interval '1 second',
        in_append_again, in_source)
    ON CONFLICT (stream_id, transaction_number) DO UPDATE SET state = 'open',
        fingerprint = excluded.fingerprint, attempt = excluded.attempt, epoch = excluded.epoch,
        opened_at = excluded.opened_at, lease_until = excluded.lease_until, ended_at = NULL,
        staged = NULL, append_again = excluded.append_again, source = excluded.source;
    IF in_attempt > 1 THEN
        DELETE FROM weir.transaction_input i WHERE i.stream_id = in_stream_id
            AND i.transaction_number = in_number AND NOT i.path = ANY (in_paths);
    END IF;
    IF cardinality(in_paths) > 0 THEN
        INSERT INTO weir.transaction_input (stream_id, path, transaction_number, bytes)
        SELECT in_stream_id, f.path, in_number, f.bytes
        FROM unnest(in_paths, in_sizes) AS f (path, bytes)
        ON CONFLICT (stream_id, path, transaction_number) DO UPDATE SET bytes = excluded.bytes;
    END IF;
END $$;
COMMENT ON FUNCTION weir.open_append(bigint, bigint, text, text, text, integer, integer, double precision, boolean, text, text[], bigint[]) IS 'For jobs: opens the transaction of an append.';

-- Give the files of an append their offsets, move the tails, and issue the clock, which is returned.
CREATE FUNCTION weir.place_append(
    in_stream_id bigint, in_number bigint, in_version integer,
    in_segments bigint[], in_offsets bigint[], in_events bigint[], in_bytes bigint[],
    in_first bigint[], in_last bigint[], in_paths text[],
    in_touched bigint[], in_from_offsets bigint[], in_from_bytes bigint[], in_to_offsets bigint[],
    in_to_bytes bigint[], in_fenced text[], in_rejected_files text[], in_rejected bigint)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog
AS $$
DECLARE
    issued bigint;
BEGIN
    UPDATE weir.stream s
    SET last_clock = greatest(s.last_clock + 1, weir.time_clock(clock_timestamp()))
    WHERE s.stream_id = in_stream_id RETURNING s.last_clock INTO issued;
    INSERT INTO weir.data_file (stream_id, transaction_number, schema_version, segment_id,
        start_offset, events, bytes, first_seq, last_seq, path)
    SELECT in_stream_id, in_number, in_version, f.*
    FROM unnest(in_segments, in_offsets, in_events, in_bytes, in_first, in_last, in_paths) f;
    INSERT INTO weir.time_index (stream_id, segment_id, start_offset, events, start_byte, bytes,
        clock, transaction_number)
    SELECT in_stream_id, m.segment_id, m.from_offset, m.to_offset - m.from_offset, m.from_byte,
        m.to_byte - m.from_byte, issued, in_number
    FROM unnest(in_touched, in_from_offsets, in_from_bytes, in_to_offsets, in_to_bytes)
        AS m (segment_id, from_offset, from_byte, to_offset, to_byte);
    UPDATE weir.segment_tail t SET tail_offset = m.to_offset, tail_bytes = m.to_byte
    FROM unnest(in_touched, in_to_offsets, in_to_bytes) AS m (segment_id, to_offset, to_byte)
    WHERE t.stream_id = in_stream_id AND t.segment_id = m.segment_id;
    IF cardinality(in_fenced) + cardinality(in_rejected_files) > 0 THEN
        INSERT INTO weir.garbage (root, path, stream_id, reason)
        SELECT '', unnest(in_fenced), in_stream_id, 'fenced'
        UNION ALL SELECT '', unnest(in_rejected_files), in_stream_id, 'rejected'
        ON CONFLICT (root, path) DO NOTHING;
    END IF;
    UPDATE weir.transaction t
    SET state = 'committed', ended_at = clock_timestamp(), staged = NULL, clock = issued,
        events = coalesce((SELECT sum(e) FROM unnest(in_events) e), 0),
        bytes = coalesce((SELECT sum(b) FROM unnest(in_bytes) b), 0),
        files = cardinality(in_paths), rejected = in_rejected
    WHERE t.stream_id = in_stream_id AND t.transaction_number = in_number;
    RETURN issued;
END $$;
COMMENT ON FUNCTION weir.place_append(bigint, bigint, integer, bigint[], bigint[], bigint[], bigint[], bigint[], bigint[], text[], bigint[], bigint[], bigint[], bigint[], bigint[], text[], text[], bigint) IS 'For jobs: makes the files of an append visible.';
