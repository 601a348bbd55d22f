-- Offsets without an event: holes (semantics 20). A stream without any is asked one probe of an index.

CREATE OR REPLACE FUNCTION weir_internal.holes_in(in_stream_id bigint, in_segment_id bigint, in_from bigint, in_past bigint)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(sum(CASE WHEN h.chunk * 65536 >= in_from AND h.chunk * 65536 + 65536 <= in_past THEN h.events
        ELSE (SELECT sum(upper(r) - lower(r)) FROM unnest(h.offsets * int4multirange(int4range(
                  greatest(in_from - h.chunk * 65536, 0)::integer,
                  least(in_past - h.chunk * 65536, 65536)::integer))) r) END), 0)::bigint
    FROM weir_internal.hole h
    WHERE in_from < in_past AND h.stream_id = in_stream_id AND h.segment_id = in_segment_id
      AND h.chunk BETWEEN in_from / 65536 AND (in_past - 1) / 65536
$$;
COMMENT ON FUNCTION weir_internal.holes_in(bigint, bigint, bigint, bigint) IS 'How many events of a segment were erased, from one offset up to another.';

-- Bounds as reader_batch has them.
CREATE OR REPLACE FUNCTION weir_internal.holes_of(bounds jsonb) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM (SELECT DISTINCT b.stream FROM jsonb_to_recordset(bounds) AS b (stream bigint)) s
                   JOIN weir_internal.hole h ON h.stream_id = s.stream) THEN
        RETURN 0;
    END IF;
    RETURN (SELECT sum(weir_internal.holes_in(b.stream, b.segment, b."from", b."to"))
            FROM jsonb_to_recordset(bounds) AS b (stream bigint, segment bigint, "from" bigint, "to" bigint));
END $$;
COMMENT ON FUNCTION weir_internal.holes_of(jsonb) IS 'How many events within the bounds of a batch were erased.';

-- What is no segment any more was pruned, so every cut has passed it.
CREATE OR REPLACE FUNCTION weir_internal.holes_till(in_stream_id bigint, in_cut jsonb) RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM weir_internal.hole h WHERE h.stream_id = in_stream_id) THEN
        RETURN 0;
    END IF;
    RETURN (
        SELECT coalesce(sum(CASE WHEN p.until >= h.past THEN h.events
                            ELSE weir_internal.holes_in(in_stream_id, h.segment_id, 0, p.until) END), 0)
        FROM weir_internal.front(in_stream_id, in_cut) f
        CROSS JOIN (SELECT o.segment_id, sum(o.events) AS events, max(o.chunk) * 65536 + 65536 AS past
                    FROM weir_internal.hole o WHERE o.stream_id = in_stream_id GROUP BY o.segment_id) h
        LEFT JOIN weir_internal.segment g ON g.stream_id = in_stream_id AND g.segment_id = h.segment_id
        CROSS JOIN LATERAL (
            SELECT CASE WHEN g.segment_id IS NULL THEN 9223372036854775807
                ELSE weir_internal.passed_until(f.keys, f.owners, f.offsets, g.key_low, g.segment_id) END AS until) p);
END $$;
COMMENT ON FUNCTION weir_internal.holes_till(bigint, jsonb) IS 'How many events before a cut were erased.';

-- The new holes of a locked stream. What is a hole already stays one, and is not counted again.
CREATE OR REPLACE FUNCTION weir_internal.add_holes(
    in_stream_id bigint, in_segments bigint[], in_chunks bigint[], in_offsets int4multirange[])
RETURNS bigint
LANGUAGE sql SET search_path = pg_catalog, pg_temp
AS $$
    WITH given AS (
        SELECT g.segment_id, g.chunk, range_agg(g.offsets) AS offsets
        FROM unnest(in_segments, in_chunks, in_offsets) AS g (segment_id, chunk, offsets)
        GROUP BY g.segment_id, g.chunk
    ), merged AS (
        SELECT g.segment_id, g.chunk, coalesce(h.events, 0) AS events_before,
               g.offsets + coalesce(h.offsets, '{}') AS offsets
        FROM given g LEFT JOIN weir_internal.hole h
            ON h.stream_id = in_stream_id AND h.segment_id = g.segment_id AND h.chunk = g.chunk
    ), counted AS (
        SELECT m.*, (SELECT sum(upper(r) - lower(r)) FROM unnest(m.offsets) r) AS events FROM merged m
    ), kept AS (
        INSERT INTO weir_internal.hole AS o (stream_id, segment_id, chunk, events, offsets)
        SELECT in_stream_id, c.segment_id, c.chunk, c.events, c.offsets FROM counted c
        ON CONFLICT (stream_id, segment_id, chunk) DO UPDATE SET events = excluded.events, offsets = excluded.offsets
    )
    SELECT coalesce(sum(c.events - c.events_before), 0)::bigint FROM counted c
$$;
COMMENT ON FUNCTION weir_internal.add_holes(bigint, bigint[], bigint[], int4multirange[]) IS 'Records erased offsets of a locked stream, per segment and 65,536 offsets; returns how many were not erased before.';
