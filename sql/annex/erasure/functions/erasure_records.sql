-- What was erased is evidence: rows are added by these functions alone, which look at the ledger first, and nobody changes
-- or deletes them (roles.sql). Names come from ids. Who may not see a stream can't say that it was erased.

-- What the forms let pass, for whoever asks by SQL: a certificate is read by people, and has no key.
CREATE OR REPLACE FUNCTION weir_internal.check_asked(in_request text, in_by text, in_reason text, in_asked jsonb) RETURNS void
LANGUAGE plpgsql IMMUTABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    given record;
    what text := 'asked';
    wrong text;
BEGIN
    FOR given IN VALUES ('request', in_request), ('requested_by', in_by), ('reason', in_reason) LOOP
        wrong := CASE
            WHEN coalesce(given.column2, '') = '' THEN 'is empty'
            WHEN length(given.column2) > 2000 THEN 'has more than 2,000 characters'
            WHEN given.column2 ~ '[\u0001-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]'
            THEN 'is not a text on one line without control characters' END;
        IF wrong IS NOT NULL THEN
            what := given.column1;
            EXIT;
        END IF;
    END LOOP;
    IF wrong IS NULL THEN
        wrong := CASE
            WHEN jsonb_typeof(in_asked) IS DISTINCT FROM 'object' THEN 'is no object'
            WHEN octet_length(in_asked::text) > 200000 THEN 'has more than 200,000 bytes'
            WHEN EXISTS (SELECT FROM jsonb_each(in_asked) a WHERE a.key NOT IN (
                'salt', 'hash', 'keys', 'condition', 'condition_hash', 'request')) THEN 'has what no request has'
            WHEN in_asked ->> 'salt' !~ '^[0-9a-f]{32}$' OR in_asked ->> 'condition_hash' !~ '^[0-9a-f]{64}$'
                OR in_asked ? 'keys' AND jsonb_typeof(in_asked -> 'keys') <> 'array'
                OR EXISTS (SELECT FROM jsonb_path_query(in_asked, '$.keys[*]') k WHERE k #>> '{}' !~ '^[0-9a-f]{64}$')
            THEN 'has a key or a condition that is not a hash' END;
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'an erasure can''t be recorded, because its % %; ask for it by weir erase, or write it as that does.',
            what, wrong USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.check_asked(text, text, text, jsonb) IS 'Refuses what a form would not let pass of who asks for an erasure, why, and of what: its keys are hashes.';

CREATE OR REPLACE FUNCTION weir_internal.begin_erasure(
    in_request text, in_stream_id bigint, in_by text, in_reason text, in_asked jsonb)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.check_asked(in_request, in_by, in_reason, in_asked);
    INSERT INTO weir_internal.erasure_request (request_id, stream_id, stream_name, requested_by, reason, asked)
    SELECT in_request, s.stream_id, s.stream_name, in_by, in_reason, in_asked
    FROM weir_internal.stream s
    WHERE s.stream_id = in_stream_id AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
    ON CONFLICT (request_id) DO NOTHING
$$;
COMMENT ON FUNCTION weir_internal.begin_erasure(text, bigint, text, text, jsonb) IS 'Records who asks for an erasure of a stream, of what and why. A request that is recorded stays what it is.';

CREATE OR REPLACE FUNCTION weir_internal.erasure_is_false(in_erasure weir_internal.erasure) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT s.state <> 'deleted' AND (
        s.stream_name <> in_erasure.stream_name OR in_erasure.compaction_number >= s.next_transaction_number
        OR EXISTS (SELECT FROM weir_internal.compaction c
                   WHERE c.stream_id = s.stream_id AND c.number = in_erasure.compaction_number AND c.state <> 'done')
        OR in_erasure.events <> (SELECT coalesce(sum(g.value::bigint), 0) FROM jsonb_each_text(in_erasure.segments) g)
        OR EXISTS (
            SELECT FROM jsonb_object_keys(in_erasure.segments) k
            WHERE (SELECT coalesce(sum((e.segments ->> k)::bigint), 0) FROM weir_internal.erasure e
                   WHERE e.stream_id = s.stream_id)
                > (SELECT coalesce(sum(h.events), 0) FROM weir_internal.hole h
                   WHERE h.stream_id = s.stream_id AND h.segment_id = weir_internal.segment_id(k))))
    FROM weir_internal.stream s WHERE s.stream_id = in_erasure.stream_id
$$;
COMMENT ON FUNCTION weir_internal.erasure_is_false(weir_internal.erasure) IS 'Whether an erasure says something else than the compactions and the holes of its stream: events that are not missing, or by no compaction.';

-- Nobody calls it but the two that follow (roles.sql).
CREATE OR REPLACE FUNCTION weir_internal.add_erasure(
    in_stream_id bigint, in_number bigint, in_by text, in_reason text, in_asked jsonb, in_events bigint, in_files integer,
    in_before bigint, in_after bigint, in_segments jsonb)
RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    made weir_internal.erasure;
BEGIN
    PERFORM weir_internal.check_asked(coalesce(in_asked ->> 'request', 'none'), in_by, in_reason, in_asked);
    INSERT INTO weir_internal.erasure (stream_id, stream_name, compaction_number, requested_by, reason, asked, events, files,
                                       digest_before, digest_after, segments)
    SELECT s.stream_id, s.stream_name, in_number, in_by, in_reason, in_asked, in_events, in_files, in_before, in_after,
           in_segments
    FROM weir_internal.stream s JOIN weir_internal.compaction c USING (stream_id)
    WHERE s.stream_id = in_stream_id AND c.number = in_number AND c.state = 'done'
      AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
    RETURNING * INTO made;
    IF made.erasure_number IS NULL OR weir_internal.erasure_is_false(made) THEN
        RAISE EXCEPTION 'this login can''t record that % events of the stream with number % were erased by compaction %, because the ledger does not say so; only what erases events records them.', in_events, in_stream_id, in_number
            USING ERRCODE = 'WEIR2', DETAIL = 'right_missing';
    END IF;
    RETURN made.erasure_number;
END $$;
COMMENT ON FUNCTION weir_internal.add_erasure(bigint, bigint, text, text, jsonb, bigint, integer, bigint, bigint, jsonb) IS 'Records what a compaction has erased, if the holes of the stream say so, too. Returns the number of the erasure.';

CREATE OR REPLACE FUNCTION weir_internal.record_erasure(
    in_stream_id bigint, in_number bigint, in_by text, in_reason text, in_events bigint, in_files integer, in_segments jsonb)
RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.add_erasure(in_stream_id, in_number, in_by, in_reason, '{}', in_events, in_files, NULL, NULL, in_segments)
$$;
COMMENT ON FUNCTION weir_internal.record_erasure(bigint, bigint, text, text, bigint, integer, jsonb) IS 'Records what a compaction has erased that belongs to no request known here.';

CREATE OR REPLACE FUNCTION weir_internal.record_requested_erasure(
    in_stream_id bigint, in_number bigint, in_by text, in_reason text, in_asked jsonb, in_events bigint, in_files integer,
    in_before bigint, in_after bigint, in_segments jsonb)
RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.add_erasure(
        CASE WHEN in_asked ->> 'request' IS NULL OR EXISTS (
            SELECT FROM weir_internal.erasure_request r
            WHERE r.request_id = in_asked ->> 'request' AND r.done_at IS NULL) THEN in_stream_id END,
        in_number, in_by, in_reason, in_asked, in_events, in_files, in_before, in_after, in_segments)
$$;
COMMENT ON FUNCTION weir_internal.record_requested_erasure(bigint, bigint, text, text, jsonb, bigint, integer, bigint, bigint, jsonb) IS 'Records what a compaction has erased for a request that has not ended.';

-- in_parts: what each part had, so that one that is looked at again counts once; without a name what is to be added.
CREATE OR REPLACE FUNCTION weir_internal.count_erased(in_request text, in_store text, in_output text, in_part text, in_rows bigint)
RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE weir_internal.erasure_request r SET
        stores = CASE WHEN in_store IS NULL THEN r.stores ELSE r.stores || jsonb_build_object(
            in_store, coalesce((r.stores ->> in_store)::bigint, 0) + in_rows) END,
        outputs = CASE WHEN in_output IS NULL THEN r.outputs ELSE r.outputs || jsonb_build_object(
            in_output, coalesce(r.outputs -> in_output, '{}') || jsonb_build_object(
                coalesce(in_part, 'rows'), in_rows + CASE WHEN in_part IS NULL
                    THEN coalesce((r.outputs #>> ARRAY[in_output, 'rows'])::bigint, 0) ELSE 0 END)) END
    WHERE r.request_id = in_request AND r.done_at IS NULL AND in_rows > 0
      AND r.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
$$;
COMMENT ON FUNCTION weir_internal.count_erased(text, text, text, text, bigint) IS 'Counts rows that a request which has not ended has erased from an adjunct store, from a part of an output, or (without a part) from a table.';

-- What was searched is counted and named here: the caller says only by what.
CREATE OR REPLACE FUNCTION weir_internal.end_erasure(in_request text, in_searched jsonb, in_remains jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE weir_internal.erasure_request r SET remains = in_remains, done_at = clock_timestamp(), searched = (
        SELECT coalesce(jsonb_agg(o.value || jsonb_build_object('stream', s.stream_name, 'events', (
                SELECT coalesce(sum(e.events), 0) FROM weir_internal.erasure e
                WHERE e.stream_id = s.stream_id AND e.asked ->> 'request' = in_request)) ORDER BY o.ordinality), '[]')
        FROM jsonb_array_elements(in_searched) WITH ORDINALITY o
        JOIN weir_internal.stream s ON s.stream_id = (o.value ->> 'stream_id')::bigint
            AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking())))
    WHERE r.request_id = in_request AND r.done_at IS NULL
      AND r.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
$$;
COMMENT ON FUNCTION weir_internal.end_erasure(text, jsonb, jsonb) IS 'Records that a request has erased what it found, in which streams it has looked, by what, and what is left.';

CREATE OR REPLACE FUNCTION weir_internal.forget_erasure(in_request text) RETURNS boolean
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    WITH gone AS (
        DELETE FROM weir_internal.erasure_request r
        WHERE r.request_id = in_request AND r.done_at IS NULL AND r.stores = '{}' AND r.outputs = '{}'
          AND NOT EXISTS (SELECT FROM weir_internal.erasure e WHERE e.asked ->> 'request' = in_request)
          AND r.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
        RETURNING 1
    )
    SELECT EXISTS (SELECT FROM gone)
$$;
COMMENT ON FUNCTION weir_internal.forget_erasure(text) IS 'Deletes a request that has not ended and by which nothing was erased; returns whether it was one.';

-- For jobs only (roles.sql).
CREATE OR REPLACE FUNCTION weir_internal.sign_erasure(in_request text, in_certificate jsonb) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    UPDATE weir_internal.erasure_request r SET certificate = in_certificate, certified_at = clock_timestamp()
    WHERE r.request_id = in_request AND r.certificate IS NULL AND r.done_at IS NOT NULL
$$;
COMMENT ON FUNCTION weir_internal.sign_erasure(text, jsonb) IS 'Keeps the certificate of a request that has ended and has none yet.';

-- As the audit looks at it.
CREATE OR REPLACE FUNCTION weir_internal.erasure_is_unfounded(in_request text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT EXISTS (SELECT FROM weir_internal.erasure e
                   WHERE e.asked ->> 'request' = in_request AND weir_internal.erasure_is_false(e))
        OR EXISTS (SELECT FROM weir_internal.erasure_request r JOIN weir_internal.stream s USING (stream_id)
                   WHERE r.request_id = in_request AND (r.stream_name <> s.stream_name OR EXISTS (
                       SELECT FROM jsonb_array_elements(r.searched) o
                       LEFT JOIN weir_internal.stream t ON t.stream_id = (o ->> 'stream_id')::bigint
                       WHERE o ->> 'stream' IS DISTINCT FROM t.stream_name
                          OR (o ->> 'events')::bigint IS DISTINCT FROM (
                              SELECT coalesce(sum(e.events), 0) FROM weir_internal.erasure e
                              WHERE e.stream_id = t.stream_id AND e.asked ->> 'request' = in_request))))
$$;
COMMENT ON FUNCTION weir_internal.erasure_is_unfounded(text) IS 'Whether a request says something else than the compactions, holes and names of streams.';
