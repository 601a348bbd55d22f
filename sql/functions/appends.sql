-- An append begins with one call and commits with one. Its statements are in functions because round trips
-- and planning cost several times as much as running them, and Postgres plans a function once per session.
-- weir.controller turns outcomes into errors.
--
-- If other sessions wait for the stream, the function releases its lock before the disk has the commit: it
-- returns a result that is not `durable` yet, and the caller waits for the disk after the lock is free. After a
-- crash no commit is there without those that were committed before it.

CREATE OR REPLACE FUNCTION weir_internal.active_tails(in_stream_id bigint)
RETURNS TABLE (ids bigint[], lows double precision[], highs double precision[])
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT array_agg(a.segment_id), array_agg(a.key_low), array_agg(a.key_high)
    FROM (SELECT t.segment_id, g.key_low, g.key_high FROM weir_internal.segment_tail t
          CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
              SELECT o.key_low, o.key_high FROM weir_internal.segment o
              WHERE o.stream_id = t.stream_id AND o.segment_id = t.segment_id OFFSET 0) g
          WHERE t.stream_id = in_stream_id ORDER BY g.key_low) a
$$;
COMMENT ON FUNCTION weir_internal.active_tails(bigint) IS 'The active segments of a stream, as arrays in the order of their keys.';

CREATE OR REPLACE FUNCTION weir_internal.held_input(in_stream_id bigint, in_number bigint, in_paths text[])
RETURNS TABLE (path text, transaction_number bigint, source text, ended_at timestamptz)
LANGUAGE sql STABLE ROWS 1
AS $$
    SELECT i.path, i.transaction_number, t.source, t.ended_at
    FROM unnest(in_paths) AS f (path)
    JOIN weir_internal.transaction_input i ON i.stream_id = in_stream_id AND i.path = f.path
        AND i.transaction_number <> in_number
    JOIN weir_internal.transaction t ON t.stream_id = i.stream_id
        AND t.transaction_number = i.transaction_number AND t.state = 'committed'
    ORDER BY i.path, i.transaction_number LIMIT 1
$$;
COMMENT ON FUNCTION weir_internal.held_input(bigint, bigint, text[]) IS 'The first of some input files that another committed append has appended.';

-- A transaction of the same writer and batch that is open is taken over with a new attempt, which fences the
-- attempt before; one that was aborted begins anew.
CREATE OR REPLACE FUNCTION weir_internal.begin_append(
    in_scope text, in_name text, in_writer_id text, in_batch_id text, in_fingerprint text,
    in_lease double precision, in_allow_repeated_files boolean, in_source text,
    in_paths text[], in_sizes bigint[], in_stated bigint,
    OUT outcome text, OUT stream_id bigint, OUT state text, OUT transaction_number bigint,
    OUT attempt integer, OUT routing_key text, OUT on_missing_key text, OUT on_bad_rows text,
    OUT schema_version integer, OUT fields jsonb, OUT ids bigint[], OUT lows double precision[],
    OUT highs double precision[], OUT clock bigint, OUT events bigint, OUT rejected bigint,
    OUT bytes bigint, OUT files integer, OUT held jsonb, OUT durable boolean, OUT event_time text,
    OUT min_event_time bigint, OUT max_event_time bigint,
    OUT untimed bigint, OUT late bigint, OUT complete_until bigint, OUT on_new_column text,
    OUT dropped text[], OUT erased_salt bytea, OUT erased_hashes text[])
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    s weir_internal.stream;
    t weir_internal.transaction;
    number bigint;
BEGIN
    SELECT * INTO s FROM weir_internal.stream o
    WHERE o.scope = in_scope AND o.name = in_name AND o.state <> 'deleted'
    FOR NO KEY UPDATE SKIP LOCKED;
    durable := FOUND;
    IF NOT FOUND THEN
        PERFORM set_config('synchronous_commit', 'off', true);
        SELECT * INTO s FROM weir_internal.stream o
        WHERE o.scope = in_scope AND o.name = in_name AND o.state <> 'deleted' FOR NO KEY UPDATE;
    END IF;
    IF NOT FOUND THEN
        outcome := 'no stream';
        RETURN;
    END IF;
    -- Postgres looks a range of batch_id up in the unique index. For an equal batch_id it may take the index of
    -- all that the writer has appended, and read all of that.
    SELECT * INTO t FROM weir_internal.transaction o
    WHERE o.stream_name = s.stream_name AND o.writer_id = in_writer_id
      AND o.batch_id >= in_batch_id AND o.batch_id <= in_batch_id
    ORDER BY o.batch_id LIMIT 1;
    stream_id := s.stream_id;
    state := coalesce(t.state, s.state);
    number := coalesce(t.transaction_number, s.next_transaction_number);
    transaction_number := number;
    IF t.state <> 'aborted' AND t.fingerprint <> in_fingerprint THEN
        outcome := 'other input';
        RETURN;
    END IF;
    IF t.state = 'committed' THEN
        outcome := t.state; clock := t.clock; events := t.events; rejected := t.rejected;
        bytes := t.bytes; files := t.files; min_event_time := t.min_event_time;
        max_event_time := t.max_event_time; untimed := t.untimed; late := t.late;
        complete_until := t.complete_until;
        RETURN;
    END IF;
    IF s.state <> 'active' THEN
        outcome := s.state;
        RETURN;
    END IF;
    IF in_stated IS NOT NULL AND s.event_time IS NULL THEN
        outcome := 'no event time';
        RETURN;
    END IF;
    IF cardinality(in_paths) > 0 AND NOT in_allow_repeated_files THEN
        SELECT to_jsonb(h) INTO held FROM weir_internal.held_input(s.stream_id, number, in_paths) h;
        IF held IS NOT NULL THEN
            outcome := 'held';
            RETURN;
        END IF;
    END IF;
    attempt := coalesce(t.attempt, 0) + 1;
    IF attempt = 1 THEN
        UPDATE weir_internal.stream o SET next_transaction_number = number + 1
        WHERE o.stream_id = s.stream_id;
        INSERT INTO weir_internal.transaction (stream_id, stream_name, transaction_number, writer_id,
            batch_id, fingerprint, state, attempt, epoch, opened_at, lease_until, allow_repeated_files, source)
        VALUES (s.stream_id, s.stream_name, number, in_writer_id, in_batch_id, in_fingerprint,
            'open', 1, s.current_epoch, clock_timestamp(),
            clock_timestamp() + in_lease * interval '1 second', in_allow_repeated_files, in_source);
    ELSE
        UPDATE weir_internal.transaction o SET state = 'open', fingerprint = in_fingerprint,
            attempt = t.attempt + 1, epoch = s.current_epoch, opened_at = clock_timestamp(),
            lease_until = clock_timestamp() + in_lease * interval '1 second', ended_at = NULL,
            staged = NULL, allow_repeated_files = in_allow_repeated_files, source = in_source
        WHERE o.stream_id = s.stream_id AND o.transaction_number = number;
        DELETE FROM weir_internal.transaction_input i
        WHERE i.stream_id = s.stream_id AND i.transaction_number = number;
    END IF;
    outcome := 'open';
    IF cardinality(in_paths) > 0 THEN
        INSERT INTO weir_internal.transaction_input (stream_id, path, transaction_number, bytes)
        SELECT s.stream_id, f.path, number, f.bytes
        FROM unnest(in_paths, in_sizes) AS f (path, bytes);
    END IF;
    routing_key := s.routing_key; on_missing_key := s.on_missing_key; on_bad_rows := s.on_bad_rows;
    on_new_column := s.on_new_column;
    schema_version := s.schema_version; event_time := s.event_time; complete_until := s.complete_until;
    SELECT v.fields, v.dropped INTO fields, dropped FROM weir_internal.stream_schema v
    WHERE v.stream_id = s.stream_id AND v.version = s.schema_version;
    SELECT a.ids, a.lows, a.highs INTO ids, lows, highs FROM weir_internal.active_tails(s.stream_id) a;
    IF s.refuse_erased THEN
        SELECT e.salt, e.hashes INTO erased_salt, erased_hashes FROM weir_internal.erased_keys_of(s.stream_id) e;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.begin_append(text, text, text, text, text, double precision, boolean, text, text[], bigint[], bigint) IS 'Locks a stream and opens the transaction of an append, or begins its next attempt.';

CREATE OR REPLACE FUNCTION weir_internal.lock_for_commit(in_stream_id bigint)
RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    PERFORM FROM weir_internal.stream o WHERE o.stream_id = in_stream_id FOR NO KEY UPDATE SKIP LOCKED;
    IF FOUND THEN
        RETURN true;
    END IF;
    PERFORM set_config('synchronous_commit', 'off', true);
    PERFORM FROM weir_internal.stream o WHERE o.stream_id = in_stream_id FOR NO KEY UPDATE;
    RETURN false;
END $$;
COMMENT ON FUNCTION weir_internal.lock_for_commit(bigint) IS 'Locks a stream; returns whether the commit waits for the disk.';

CREATE OR REPLACE FUNCTION weir_internal.wrapped(number numeric) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
    SELECT (mod(mod(number, 18446744073709551616) + 27670116110564327424, 18446744073709551616)
            - 9223372036854775808)::bigint
$$;
COMMENT ON FUNCTION weir_internal.wrapped(numeric) IS 'A whole number modulo 2^64, as a signed long: digests are added so.';

-- The files come in the order of their rows. Each gets offsets after the tail of its segment, and the commit
-- gets the next clock. If something prevents the commit, the outcome says what, and nothing is changed.
-- The stream is locked: by the caller's transaction, or by lock_for_commit as the last argument.
CREATE OR REPLACE FUNCTION weir_internal.commit_append(
    in_stream_id bigint, in_number bigint, in_attempt integer, in_version integer,
    in_segments bigint[], in_events bigint[], in_bytes bigint[], in_first bigint[],
    in_last bigint[], in_paths text[], in_fenced text[], in_rejected_files text[],
    in_rejected bigint,
    in_min_times bigint[], in_max_times bigint[], in_untimed bigint, in_event_time text,
    in_late bigint, in_complete_until bigint, in_stated bigint,
    in_hashes bigint[], in_end_hashes bigint[], in_file_hashes bigint[], in_erased_keys integer,
    in_outside boolean, in_ahead bigint, in_behind bigint, in_durable boolean,
    OUT outcome text, OUT state text, OUT attempt integer, OUT epoch integer, OUT clock bigint,
    OUT events bigint, OUT rejected bigint, OUT bytes bigint, OUT files integer, OUT held jsonb,
    OUT min_event_time bigint, OUT max_event_time bigint,
    OUT untimed bigint, OUT late bigint, OUT complete_until bigint, OUT returned_writer text,
    OUT not_before bigint, OUT not_after bigint, OUT ahead bigint, OUT behind bigint, OUT durable boolean)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    s weir_internal.stream;
    t weir_internal.transaction;
    a record;
    issued bigint;
    total_events bigint := 0;
    total_bytes bigint := 0;
    lowest bigint;  -- event times
    highest bigint;
    word bigint;  -- what its writer counts for from now on, if this append changes that
    stream_until bigint;  -- what the stream is complete to from now on
    timed boolean;  -- whether the event times are those of the stream as it is now
    targets bigint[] := in_segments;  -- per file the active segment that gets it
BEGIN
    durable := in_durable;
    SELECT * INTO s FROM weir_internal.stream o WHERE o.stream_id = in_stream_id AND o.state <> 'deleted';
    SELECT * INTO t FROM weir_internal.transaction o
    WHERE o.stream_id = in_stream_id AND o.transaction_number = in_number;
    state := t.state; attempt := t.attempt; epoch := t.epoch;
    IF s.stream_id IS NULL THEN
        outcome := 'no stream';
    ELSIF t.state IS NULL THEN
        outcome := 'unknown';
    ELSIF t.attempt <> in_attempt OR t.state = 'aborted' THEN
        outcome := 'fenced';
    ELSIF t.state = 'committed' THEN
        outcome := 'repeated'; clock := t.clock; events := t.events; rejected := t.rejected;
        bytes := t.bytes; files := t.files; min_event_time := t.min_event_time;
        max_event_time := t.max_event_time; untimed := t.untimed; late := t.late;
        complete_until := t.complete_until;
    ELSIF s.state <> 'active' THEN
        outcome := s.state;
    ELSIF EXISTS (
        SELECT FROM unnest(in_segments) AS w (segment_id) WHERE NOT EXISTS (
            SELECT FROM weir_internal.segment_tail o
            WHERE o.stream_id = in_stream_id AND o.segment_id = w.segment_id)) THEN
        -- A scale sealed segments that the append wrote to: find the active segment of each range.
        SELECT * INTO a FROM weir_internal.active_tails(in_stream_id);
        targets := array(
            SELECT CASE WHEN g.key_high <= a.highs[g.nth] THEN a.ids[g.nth] END
            FROM unnest(in_segments) WITH ORDINALITY AS f (segment_id, i)
            CROSS JOIN LATERAL (
                SELECT o.key_high, width_bucket(o.key_low, a.lows) AS nth FROM weir_internal.segment o
                WHERE o.stream_id = in_stream_id AND o.segment_id = f.segment_id OFFSET 0) g
            ORDER BY f.i);
        -- Offsets follow the ranks within a commit. Files of two segments that were merged may not allow that.
        IF array_position(targets, NULL) IS NOT NULL OR EXISTS (
            SELECT FROM (
                SELECT f.first_seq < max(f.last_seq) OVER (PARTITION BY f.target ORDER BY f.first_seq
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS alternate
                FROM unnest(targets, in_first, in_last) AS f (target, first_seq, last_seq)) f
            WHERE f.alternate) THEN
            outcome := 'roll';
        END IF;
    END IF;
    IF outcome IS NULL AND NOT t.allow_repeated_files THEN
        SELECT to_jsonb(h) INTO held FROM weir_internal.transaction_input i
        CROSS JOIN LATERAL weir_internal.held_input(in_stream_id, in_number, array[i.path]) h
        WHERE i.stream_id = in_stream_id AND i.transaction_number = in_number
        ORDER BY i.path LIMIT 1;
        IF held IS NOT NULL THEN
            outcome := 'held';
        END IF;
    END IF;
    -- Keys were erased, or the stream began to refuse them, since the rows were compared with those that had been erased.
    IF outcome IS NULL AND s.refuse_erased AND cardinality(in_paths) > 0 AND EXISTS (
        SELECT FROM weir_internal.erased_keys e WHERE e.stream_id = in_stream_id AND e.keys > in_erased_keys) THEN
        outcome := 'erased';
    END IF;
    IF outcome IS NULL AND s.schema_version <> in_version THEN
        outcome := 'schema';
    END IF;
    timed := coalesce(s.event_time = in_event_time, false);
    IF outcome IS NULL AND timed THEN
        -- The files may have been written before the stream became complete to another time.
        IF s.complete_until IS DISTINCT FROM in_complete_until THEN
            IF EXISTS (SELECT FROM unnest(in_min_times) AS f (time) WHERE f.time < s.complete_until) THEN
                outcome := 'late'; complete_until := s.complete_until;
            END IF;
            in_late := 0;
        END IF;
        SELECT min(f.low), max(f.high) INTO lowest, highest FROM unnest(in_min_times, in_max_times) AS f (low, high);
        IF weir_internal.not_yet(s, in_stated) THEN
            outcome := 'not yet';
        END IF;
        -- Clocks of who made the events may be wrong: such events are counted, which needs their files.
        not_before := s.complete_until - 1000000 * s.event_time_back; not_after := weir_internal.not_after(s);
        IF outcome IS NULL AND NOT in_outside THEN
            IF lowest < not_before OR highest > not_after THEN
                outcome := 'outside';
            END IF;
            in_ahead := 0; in_behind := 0;
        END IF;
    END IF;
    IF outcome IS NOT NULL THEN
        RETURN;
    END IF;
    IF s.event_time IS NOT NULL AND in_stated IS DISTINCT FROM 9223372036854775807 THEN
        -- A writer that has stated `done` appends after all. It counts again: from what it states, or else from what
        -- the stream is complete to, as nobody knows what else is to come.
        DELETE FROM weir_internal.stream_writer w
        WHERE w.stream_id = in_stream_id AND w.writer_id = t.writer_id AND w.complete_until = 9223372036854775807
        RETURNING w.writer_id INTO returned_writer;
    END IF;
    IF NOT timed THEN  -- there are none, or they are those that the stream had before
        in_min_times := NULL; in_max_times := NULL; in_untimed := NULL; in_late := NULL; in_stated := NULL;
        in_ahead := NULL; in_behind := NULL;
    END IF;
    word := CASE WHEN returned_writer IS NULL THEN in_stated ELSE coalesce(in_stated, s.complete_until) END;
    stream_until := s.complete_until;
    IF word IS NOT NULL THEN
        stream_until := weir_internal.stated(s, t.writer_id, word);
    END IF;
    UPDATE weir_internal.stream o
    SET last_clock = greatest(s.last_clock + 1, weir_internal.now_clock()),
        complete_until = stream_until,
        newest_event_time = greatest(s.newest_event_time, highest),
        late_events = s.late_events + coalesce(in_late, 0),
        ahead_events = s.ahead_events + coalesce(in_ahead, 0),
        behind_events = s.behind_events + coalesce(in_behind, 0)
    WHERE o.stream_id = in_stream_id RETURNING o.last_clock INTO issued;
    IF cardinality(in_paths) > 0 THEN
        WITH file AS (
            -- By rank: files of two segments that were merged meanwhile go into one.
            SELECT f.*, sum(f.events) OVER (PARTITION BY f.target ORDER BY f.first_seq, f.i)
                   - f.events AS before
            FROM unnest(targets, in_events, in_bytes, in_first, in_last, in_paths, in_min_times, in_max_times,
                        in_hashes, in_end_hashes, in_file_hashes)
                WITH ORDINALITY AS f (target, events, bytes, first_seq, last_seq, path, low, high, hashes,
                                      end_hash, file_hash, i)
        ), moved AS (
            UPDATE weir_internal.segment_tail o
            SET tail_offset = o.tail_offset + m.events, tail_bytes = o.tail_bytes + m.bytes
            FROM (SELECT f.target, sum(f.events)::bigint AS events, sum(f.bytes)::bigint AS bytes,
                         min(f.low) AS low, max(f.high) AS high,
                         CASE WHEN count(f.hashes) = count(*) THEN sum(f.hashes) END AS hashes
                  FROM file f GROUP BY f.target) m
            WHERE o.stream_id = in_stream_id AND o.segment_id = m.target
            RETURNING o.segment_id, o.tail_offset - m.events AS start_offset,
                      o.tail_bytes - m.bytes AS start_byte, m.events, m.bytes, m.low, m.high, m.hashes
        ), indexed AS (
            INSERT INTO weir_internal.time_index (stream_id, stream_name, segment_id, start_offset, events,
                start_byte, bytes, clock, transaction_number, min_event_time, max_event_time, digest)
            SELECT in_stream_id, s.stream_name, m.segment_id, m.start_offset, m.events, m.start_byte, m.bytes,
                   issued, in_number, m.low, m.high, weir_internal.wrapped(m.hashes * (2 * issued::numeric + 1))
            FROM moved m
            RETURNING events, bytes
        ), placed AS (
            INSERT INTO weir_internal.data_file (stream_id, stream_name, transaction_number, schema_version,
                segment_id, start_offset, events, bytes, first_seq, last_seq, path, end_hash, file_hash, since)
            SELECT in_stream_id, s.stream_name, in_number, in_version, f.target, m.start_offset + f.before,
                   f.events, f.bytes, f.first_seq, f.last_seq, f.path, f.end_hash, f.file_hash,
                   issued
            FROM file f JOIN moved m ON m.segment_id = f.target
        )
        SELECT sum(i.events), sum(i.bytes) INTO total_events, total_bytes FROM indexed i;
    END IF;
    IF cardinality(in_fenced) + cardinality(in_rejected_files) > 0 THEN
        INSERT INTO weir_internal.garbage (root, path, stream_id, reason)
        SELECT '', unnest(in_fenced), in_stream_id, 'fenced'
        UNION ALL SELECT '', unnest(in_rejected_files), in_stream_id, 'rejected'
        ON CONFLICT (root, path) DO NOTHING;
    END IF;
    INSERT INTO weir_internal.capture_queue (stream_id) VALUES (in_stream_id);
    IF EXISTS (SELECT FROM weir_internal.watch w WHERE w.stream_name = s.stream_name) THEN
        PERFORM weir_internal.queue_announcements(
            s, in_number, total_events > 0, stream_until, coalesce(in_late, 0) > 0);
    END IF;
    UPDATE weir_internal.transaction o
    SET state = 'committed', ended_at = clock_timestamp(), staged = NULL, clock = issued,
        events = total_events, bytes = total_bytes, files = cardinality(in_paths),
        rejected = in_rejected, min_event_time = lowest, max_event_time = highest,
        untimed = in_untimed, late = in_late, ahead = in_ahead, behind = in_behind, stated_until = in_stated, complete_until = stream_until,
        newest_event_time = greatest(s.newest_event_time, highest),
        final_after = pg_snapshot_xmax(pg_current_snapshot())  -- as this statement sees it, after the clock
    WHERE o.stream_id = in_stream_id AND o.transaction_number = in_number;
    outcome := 'committed'; clock := issued; events := total_events; bytes := total_bytes;
    rejected := in_rejected; files := cardinality(in_paths); min_event_time := lowest;
    max_event_time := highest; untimed := in_untimed; late := in_late; complete_until := stream_until;
    ahead := in_ahead; behind := in_behind;
END $$;
COMMENT ON FUNCTION weir_internal.commit_append(bigint, bigint, integer, integer, bigint[], bigint[], bigint[], bigint[], bigint[], text[], text[], text[], bigint, bigint[], bigint[], bigint, text, bigint, bigint, bigint, bigint[], bigint[], bigint[], integer, boolean, bigint, bigint, boolean) IS 'Makes the files of an append to a locked stream visible.';
