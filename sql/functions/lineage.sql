-- Lineage: what was made of what. A unit is what one commit published as a whole: a batch of a group (a = group,
-- b = batch), or an append (a = stream, b = transaction). Nobody knows which row of a batch was made of which: a unit
-- was made of everything that it read.

-- The unit that committed a transaction. Rejected rows belong to the append or the batch that rejected them.
CREATE OR REPLACE FUNCTION weir_internal.unit_of(in_stream_id bigint, in_number bigint)
RETURNS TABLE (is_batch boolean, a bigint, b bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT r.batch_id IS NOT NULL, coalesce(r.group_id, m.stream_id, in_stream_id),
           coalesce(r.batch_id, m.transaction_number, in_number)
    FROM weir_internal.transaction t
    LEFT JOIN LATERAL (
        SELECT split_part(t.batch_id, '.', 1)::bigint AS group_id, split_part(t.batch_id, '.', 2)::bigint AS batch_id
        WHERE starts_with(t.writer_id, 'group ') AND t.batch_id ~ '\A[0-9]{1,18}\.[0-9]{1,18}\Z' OFFSET 0) i ON true
    LEFT JOIN weir_internal.reader_batch r ON r.group_id = i.group_id AND r.batch_id = i.batch_id
        AND r.outputs @> jsonb_build_array(jsonb_build_object(
            'kind', 'stream', 'stream_id', in_stream_id, 'transaction_number', in_number))
    LEFT JOIN LATERAL (
        SELECT substring(t.writer_id FROM 13)::bigint AS stream_id, t.batch_id::bigint AS transaction_number
        WHERE t.writer_id ~ '\Arejected by [0-9]{1,18}\Z' AND t.batch_id ~ '\A[0-9]{1,18}\Z' OFFSET 0) n ON true
    LEFT JOIN weir_internal.transaction m ON m.stream_id = n.stream_id AND m.transaction_number = n.transaction_number
    WHERE t.stream_id = in_stream_id AND t.transaction_number = in_number
$$;
COMMENT ON FUNCTION weir_internal.unit_of(bigint, bigint) IS 'The unit of lineage that a transaction belongs to: a batch (a = group, b = batch) or an append (a = stream, b = transaction).';

-- Postgres puts the body in place of a call. A size class may be off by one, as it comes from a logarithm.
CREATE OR REPLACE FUNCTION weir_internal.inputs_of(bounds jsonb)
RETURNS TABLE (stream_id bigint, segment_id bigint, from_offset bigint, to_offset bigint, size_class smallint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 8
AS $$
    SELECT i.stream, i.segment, i."from", i."to", ceil(ln(i."to" - i."from") / ln(2::double precision))::smallint
    FROM jsonb_to_recordset(bounds) AS i (stream bigint, segment bigint, "from" bigint, "to" bigint)
    WHERE i."to" > i."from"
$$;
COMMENT ON FUNCTION weir_internal.inputs_of(jsonb) IS 'The rows of batch_input for the bounds of a batch.';

CREATE OR REPLACE FUNCTION weir_internal.appends_of(is_batch boolean, a bigint, b bigint)
RETURNS TABLE (stream_id bigint, transaction_number bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 2
AS $$
    SELECT (o ->> 'stream_id')::bigint, (o ->> 'transaction_number')::bigint
    FROM weir_internal.reader_batch r CROSS JOIN LATERAL jsonb_array_elements(r.outputs) o
    WHERE is_batch AND r.group_id = a AND r.batch_id = b AND r.state = 'committed' AND o ->> 'kind' = 'stream'
    UNION ALL
    SELECT t.stream_id, t.transaction_number FROM weir_internal.transaction t
    WHERE NOT is_batch AND t.stream_id = a AND t.transaction_number = b
    UNION ALL
    SELECT t.stream_id, t.transaction_number
    FROM weir_internal.stream s
    JOIN weir_internal.stream o ON o.stream_name = s.stream_name || '.rejected' AND o.state <> 'deleted'
    CROSS JOIN LATERAL (  -- a range of batch_id: see begin_append
        SELECT t.stream_id, t.transaction_number FROM weir_internal.transaction t
        WHERE t.stream_name = o.stream_name AND t.writer_id = 'rejected by ' || a
          AND t.batch_id >= b::text AND t.batch_id <= b::text
        ORDER BY t.batch_id LIMIT 1) t
    WHERE NOT is_batch AND s.stream_id = a
$$;
COMMENT ON FUNCTION weir_internal.appends_of(boolean, bigint, bigint) IS 'The transactions that a unit of lineage committed.';

CREATE OR REPLACE FUNCTION weir_internal.writers_of(in_stream_id bigint, in_segment_id bigint, first bigint, past bigint)
RETURNS TABLE (is_batch boolean, a bigint, b bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 2
AS $$
    SELECT u.* FROM weir_internal.commits_in(in_stream_id, in_segment_id, first, past) i
    CROSS JOIN LATERAL weir_internal.unit_of(in_stream_id, i.transaction_number) u
$$;
COMMENT ON FUNCTION weir_internal.writers_of(bigint, bigint, bigint, bigint) IS 'The units of lineage that wrote the events of a segment from one offset up to another.';

CREATE OR REPLACE FUNCTION weir_internal.readers_of(in_stream_id bigint, in_segment_id bigint, first bigint, past bigint)
RETURNS TABLE (is_batch boolean, a bigint, b bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 2
AS $$
    -- One class more than needed, as a class may be off by one.
    SELECT true, i.group_id, i.batch_id
    FROM generate_series(0, 62) AS c (size)
    CROSS JOIN LATERAL (
        SELECT n.group_id, n.batch_id, n.to_offset FROM weir_internal.batch_input n
        WHERE n.stream_id = in_stream_id AND n.segment_id = in_segment_id AND n.size_class = c.size
          AND n.from_offset < past AND n.from_offset > first - (1::bigint << least(c.size + 1, 62)) OFFSET 0) i
    WHERE i.to_offset > first
$$;
COMMENT ON FUNCTION weir_internal.readers_of(bigint, bigint, bigint, bigint) IS 'The batches that read events of a segment from one offset up to another.';

CREATE OR REPLACE FUNCTION weir_internal.next_units(is_batch boolean, a bigint, b bigint, up boolean)
RETURNS TABLE (next_is_batch boolean, next_a bigint, next_b bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
    SELECT w.* FROM weir_internal.reader_batch r
    CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) i
    CROSS JOIN LATERAL weir_internal.writers_of(i.stream_id, i.segment_id, i.from_offset, i.to_offset) w
    WHERE up AND next_units.is_batch AND r.group_id = next_units.a AND r.batch_id = next_units.b
      AND r.state = 'committed'
    UNION
    SELECT r.* FROM weir_internal.appends_of(is_batch, a, b) t
    JOIN weir_internal.transaction x USING (stream_id, transaction_number)
    CROSS JOIN LATERAL weir_internal.commits_between(x.stream_id, x.clock, x.clock) i
    CROSS JOIN LATERAL weir_internal.readers_of(x.stream_id, i.segment_id, i.start_offset, i.start_offset + i.events) r
    WHERE NOT up
$$;
COMMENT ON FUNCTION weir_internal.next_units(boolean, bigint, bigint, boolean) IS 'The units of lineage one step further up (that wrote what a unit read) or down (that read what it wrote).';

CREATE OR REPLACE FUNCTION weir_internal.units_of_run(run text)
RETURNS TABLE (is_batch boolean, a bigint, b bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 4
AS $$
    SELECT true, r.group_id, r.batch_id FROM weir_internal.reader_batch r
    WHERE r.reader_id = run AND r.state = 'committed'
    UNION
    SELECT false, t.stream_id, t.transaction_number
    FROM regexp_match(run, '\A([^/]+)/([^/]+)/([^/]+?)(?:/(\d{1,9}))?\Z') AS m (part)
    JOIN weir_internal.job_run j ON j.dag_id = m.part[1] AND j.run_id = m.part[2] AND j.task_id = m.part[3]
        AND j.map_index = coalesce(m.part[4]::integer, -1) AND j.job = 'ingest'
    JOIN weir_internal.stream s ON s.stream_name = j.report ->> 'stream' AND s.state <> 'deleted'
    JOIN weir_internal.transaction t ON t.stream_id = s.stream_id
        AND t.transaction_number = CASE WHEN j.report ->> 'transaction_number' ~ '\A[0-9]{1,18}\Z'  -- a team writes it
            THEN (j.report ->> 'transaction_number')::bigint END
$$;
COMMENT ON FUNCTION weir_internal.units_of_run(text) IS 'The units of lineage that a run (DAG/run/task, with /map index if it is mapped) committed.';

CREATE OR REPLACE FUNCTION weir_internal.things_of(is_batch boolean, a bigint, b bigint)
RETURNS TABLE (side text, kind text, name text, segment text, from_offset bigint, to_offset bigint, version bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 8
AS $$
    SELECT 'read', 'stream', s.stream_name, weir_internal.segment_name(i.segment_id), i.from_offset, i.to_offset,
           NULL::bigint
    FROM weir_internal.reader_batch r CROSS JOIN LATERAL weir_internal.inputs_of(r.bounds) i
    JOIN weir_internal.stream s USING (stream_id)
    WHERE is_batch AND r.group_id = a AND r.batch_id = b AND r.state = 'committed'
    UNION ALL
    SELECT 'read', 'store', s.name, NULL, NULL, NULL, p.version
    FROM weir_internal.adjunct_pin p JOIN weir_internal.adjunct_store s USING (store_id)
    WHERE is_batch AND p.group_id = a AND p.batch_id = b
    UNION ALL
    SELECT 'read', 'file', i.path, NULL, NULL, NULL, NULL FROM weir_internal.transaction_input i
    WHERE NOT is_batch AND i.stream_id = a AND i.transaction_number = b
    UNION ALL
    SELECT 'wrote', 'stream', s.stream_name, weir_internal.segment_name(i.segment_id), i.start_offset,
           i.start_offset + i.events, t.transaction_number
    FROM weir_internal.appends_of(is_batch, a, b) t
    JOIN weir_internal.transaction x USING (stream_id, transaction_number)
    JOIN weir_internal.stream s USING (stream_id)
    CROSS JOIN LATERAL weir_internal.commits_between(x.stream_id, x.clock, x.clock) i
    UNION ALL
    SELECT 'wrote', o ->> 'kind', CASE o ->> 'kind' WHEN 'table' THEN o ->> 'output'
           ELSE (o ->> 'root') || '/' || (o ->> 'path') END, NULL, NULL, NULL, NULL
    FROM weir_internal.reader_batch r CROSS JOIN LATERAL jsonb_array_elements(r.outputs) o
    WHERE is_batch AND r.group_id = a AND r.batch_id = b AND o ->> 'kind' <> 'stream'
$$;
COMMENT ON FUNCTION weir_internal.things_of(boolean, bigint, bigint) IS 'What a unit of lineage read and wrote.';

CREATE OR REPLACE FUNCTION weir.lineage("of" text, direction text DEFAULT 'up', depth integer DEFAULT NULL,
    segment text DEFAULT NULL, from_offset bigint DEFAULT NULL, to_offset bigint DEFAULT NULL)
RETURNS TABLE (step integer, run text, reader_group text, batch_id bigint, function text, function_version text,
               committed_at timestamptz, side text, kind text, name text, name_segment text, name_from bigint,
               name_to bigint, version bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 100
AS $$
#variable_conflict use_column
DECLARE
    up CONSTANT boolean := lineage.direction = 'up';
    most CONSTANT integer := coalesce(lineage.depth, 2147483647);
    sid bigint;
    wanted bigint;
BEGIN
    IF lineage.direction NOT IN ('up', 'down') OR lineage.direction IS NULL THEN
        RAISE EXCEPTION 'direction is %; it must be up (what it was made of) or down (what was made of it).',
            coalesce(quote_literal(lineage.direction), 'NULL') USING ERRCODE = 'WEIR2', DETAIL = 'argument_invalid';
    END IF;
    IF "of" IS NULL OR "of" !~ '/.*/' THEN
        sid := weir_internal.stream_id("of");
        IF lineage.segment IS NOT NULL THEN
            wanted := (weir_internal.segment_of(sid, lineage.segment)).segment_id;
        END IF;
    END IF;
    IF (lineage.from_offset IS NOT NULL OR lineage.to_offset IS NOT NULL) AND wanted IS NULL THEN
        RAISE EXCEPTION 'offsets are asked for of %, but each segment of a stream counts its own; name a stream and one segment, such as 0.0.',
            "of" USING ERRCODE = 'WEIR2', DETAIL = 'argument_missing';
    END IF;
    RETURN QUERY
    WITH RECURSIVE found (step, is_batch, a, b) AS (
        SELECT 1, u.is_batch, u.a, u.b
        FROM (
            SELECT w.* FROM weir_internal.segment g
            CROSS JOIN LATERAL weir_internal.writers_of(g.stream_id, g.segment_id, coalesce(lineage.from_offset, 0),
                coalesce(lineage.to_offset, 9223372036854775807)) w
            WHERE up AND g.stream_id = sid AND (wanted IS NULL OR g.segment_id = wanted)
            UNION
            SELECT r.* FROM weir_internal.segment g
            CROSS JOIN LATERAL weir_internal.readers_of(g.stream_id, g.segment_id, coalesce(lineage.from_offset, 0),
                coalesce(lineage.to_offset, 9223372036854775807)) r
            WHERE NOT up AND g.stream_id = sid AND (wanted IS NULL OR g.segment_id = wanted)
        ) u
        UNION ALL
        SELECT 0, r.* FROM weir_internal.units_of_run("of") r WHERE sid IS NULL
        UNION
        SELECT f.step + 1, n.* FROM found f CROSS JOIN LATERAL weir_internal.next_units(f.is_batch, f.a, f.b, up) n
        WHERE f.step < most
    ), unit AS (
        SELECT min(f.step) AS step, f.is_batch, f.a, f.b FROM found f GROUP BY f.is_batch, f.a, f.b
    )
    SELECT u.step, coalesce(r.reader_id, t.source), r.group_name, r.batch_id, r.function, r.function_version,
           coalesce(r.committed_at, weir_internal.clock_time(t.clock)), x.side, x.kind, x.name, x.segment, x.from_offset,
           x.to_offset, x.version
    FROM unit u
    LEFT JOIN weir_internal.reader_batch r ON u.is_batch AND r.group_id = u.a AND r.batch_id = u.b
    LEFT JOIN weir_internal.transaction t ON NOT u.is_batch AND t.stream_id = u.a AND t.transaction_number = u.b
    LEFT JOIN LATERAL weir_internal.things_of(u.is_batch, u.a, u.b) x ON true
    WHERE NOT EXISTS (SELECT FROM weir_internal.hidden_names(weir_internal.asking()) h (name)
                      WHERE h.name IN (x.name, r.group_name))
      AND (u.is_batch OR u.a NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking())))
      AND (x.kind IS DISTINCT FROM 'store' OR x.name NOT IN (
          SELECT a.name FROM weir_internal.hidden_stores(weir_internal.asking()) h (store_id)
          JOIN weir_internal.adjunct_store a USING (store_id)))
    ORDER BY u.step, 7, u.is_batch, u.a, u.b, x.side, x.kind, x.name, x.segment, x.from_offset;
END $$;
COMMENT ON FUNCTION weir.lineage(text, text, integer, text, bigint, bigint) IS 'Which runs made the events of a stream (of: its name, and if wanted a segment and offsets) or what a run (of: DAG/run/task) committed, from what: direction up; or what was made of it: down. A row for everything that a run read or wrote in one commit; step counts the commits on the way. It reaches back as far as job_history.';
