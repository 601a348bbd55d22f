-- event_offset is null for a future segment.
CREATE OR REPLACE FUNCTION weir_internal.cut_entries(cut jsonb)
RETURNS TABLE (segment_id bigint, event_offset bigint)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 32
AS $$
    SELECT weir_internal.segment_id(entry.key),
           CASE WHEN jsonb_typeof(entry.value) = 'number' THEN entry.value::bigint END
    FROM jsonb_each(cut) AS entry
$$;
COMMENT ON FUNCTION weir_internal.cut_entries(jsonb) IS 'The entries of a stream cut, one row per segment.';

-- Raises an error that names an invalid entry, or a segment that the stream does not have. With OFFSET 0
-- Postgres reads one index entry per entry of the cut. Without it, Postgres estimates by the average stream, and
-- may read all segments of a long history.
CREATE OR REPLACE FUNCTION weir_internal.cut_segments(in_stream_id bigint, cut jsonb)
RETURNS TABLE (segment_id bigint, event_offset bigint, key_low double precision,
               key_high double precision, creation_epoch integer, sealed_epoch integer,
               events bigint, bytes bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 32
AS $$
#variable_conflict use_column
DECLARE
    found integer;
    missing text;
    wrong text;
BEGIN
    IF jsonb_typeof(cut) <> 'object' OR cut = '{}' THEN
        RAISE EXCEPTION '% is not a stream cut; list the segments to read next, such as {"0.0": 12, "5.1": "future"}.', cut
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    SELECT entry.key || ': ' || entry.value INTO wrong FROM jsonb_each(cut) entry
    WHERE weir_internal.segment_id(entry.key) IS NULL
       OR entry.value <> '"future"' AND entry.value::text !~ '\A[0-9]{1,18}\Z'
    LIMIT 1;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'the stream cut has the entry %; write a segment as number.epoch, such as 5.1, and its offset as a whole number, 0 or more, or "future".', wrong
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    RETURN QUERY
    SELECT c.segment_id, c.event_offset, s.key_low, s.key_high, s.creation_epoch, s.sealed_epoch,
           s.events, s.bytes
    FROM weir_internal.cut_entries(cut) c
    CROSS JOIN LATERAL (
        SELECT * FROM weir_internal.segment g
        WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s;
    GET DIAGNOSTICS found = ROW_COUNT;
    IF found <> (SELECT count(*) FROM weir_internal.cut_entries(cut)) THEN
        SELECT weir_internal.segment_name(c.segment_id) INTO missing FROM weir_internal.cut_entries(cut) c
        WHERE NOT EXISTS (SELECT FROM weir_internal.segment s WHERE s.stream_id = in_stream_id
                          AND s.segment_id = c.segment_id)
        ORDER BY c.segment_id LIMIT 1;
        RAISE EXCEPTION 'the stream has no segment %, because it never existed or was deleted; choose a cut at or after the head.', missing
            USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.cut_segments(bigint, jsonb) IS 'The entries of a stream cut with their segments.';

-- The front of a cut is the oldest of its segments at every key. It is an array so that many lookups are fast:
-- the owner at a key is owners[width_bucket(key, keys)], a binary search. At keys without a segment the owner is
-- the largest bigint, because Postgres reads arrays without nulls faster.
CREATE OR REPLACE FUNCTION weir_internal.front(segment_ids bigint[], key_lows double precision[], key_highs double precision[])
RETURNS TABLE (keys double precision[], owners bigint[])
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
    WITH border AS (
        SELECT b.segment_id, b.key, dense_rank() OVER (ORDER BY b.key) AS piece
        FROM (SELECT s.segment_id, v.key
              FROM unnest(segment_ids, key_lows, key_highs) AS s (segment_id, key_low, key_high)
              CROSS JOIN LATERAL (VALUES (s.key_low), (s.key_high)) v (key)
              UNION ALL SELECT NULL, 0.0) b
    ), spread AS (
        SELECT b.segment_id, min(b.piece) AS first, max(b.piece) AS past
        FROM border b WHERE b.segment_id IS NOT NULL GROUP BY b.segment_id
    ), piece AS (
        SELECT b.piece, b.key, NULL::bigint AS owner FROM border b
        UNION ALL
        SELECT p.piece, NULL, s.segment_id
        FROM spread s CROSS JOIN LATERAL generate_series(s.first, s.past - 1) AS p (piece)
    ), front AS (
        SELECT p.piece, max(p.key) AS key, coalesce(min(p.owner), 9223372036854775807) AS owner
        FROM piece p GROUP BY p.piece
    )
    SELECT array_agg(f.key ORDER BY f.piece), array_agg(f.owner ORDER BY f.piece) FROM front f
$$;
COMMENT ON FUNCTION weir_internal.front(bigint[], double precision[], double precision[]) IS 'At every key the oldest of some segments: owners[width_bucket(key, keys)].';

-- offsets: at each key the offset up to which its owner is read; 0 for a future segment.
CREATE OR REPLACE FUNCTION weir_internal.front(in_stream_id bigint, cut jsonb)
RETURNS TABLE (keys double precision[], owners bigint[], offsets bigint[])
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT f.keys, f.owners,
           array(SELECT coalesce(c.event_offset, 0)
                 FROM unnest(f.owners) WITH ORDINALITY AS o (segment_id, piece)
                 LEFT JOIN weir_internal.cut_entries(cut) c USING (segment_id)
                 ORDER BY o.piece)
    FROM (SELECT array_agg(c.segment_id) AS ids, array_agg(c.key_low) AS lows,
                 array_agg(c.key_high) AS highs
          FROM weir_internal.cut_segments(in_stream_id, cut) c) s
    CROSS JOIN LATERAL weir_internal.front(s.ids, s.lows, s.highs) f
$$;
COMMENT ON FUNCTION weir_internal.front(bigint, jsonb) IS 'At every key the oldest segment of a cut, owners[width_bucket(key, keys)], and up to where it is read.';

-- The rule of what a cut has passed: if its front is newer at the key where a segment begins, all of the
-- segment; if the segment is the front, the events before the offset; if the front is older, nothing.
CREATE OR REPLACE FUNCTION weir_internal.has_passed(keys double precision[], owners bigint[], offsets bigint[],
    key_low double precision, segment_id bigint, until bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN owners[width_bucket(key_low, keys)] > segment_id
    OR owners[width_bucket(key_low, keys)] = segment_id
       AND offsets[width_bucket(key_low, keys)] >= until;
COMMENT ON FUNCTION weir_internal.has_passed(double precision[], bigint[], bigint[], double precision, bigint, bigint) IS 'Whether a cut, given by its front, has passed a segment up to an offset.';

-- The rule of has_passed for all offsets of a segment.
CREATE OR REPLACE FUNCTION weir_internal.passed_until(keys double precision[], owners bigint[], offsets bigint[],
    key_low double precision, segment_id bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN owners[width_bucket(key_low, keys)] > segment_id THEN 9223372036854775807
            WHEN owners[width_bucket(key_low, keys)] = segment_id
            THEN offsets[width_bucket(key_low, keys)] ELSE 0 END;
COMMENT ON FUNCTION weir_internal.passed_until(double precision[], bigint[], bigint[], double precision, bigint) IS 'The offset up to which a cut, given by its front, has passed a segment; 9223372036854775807 if it has passed all of it.';

CREATE OR REPLACE FUNCTION weir_internal.first_behind(in_stream_id bigint, cut jsonb, other jsonb) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT min(e.segment_id)
    FROM weir_internal.front(in_stream_id, cut) f
    CROSS JOIN weir_internal.cut_segments(in_stream_id, other) e
    WHERE e.event_offset IS NOT NULL
      AND weir_internal.has_passed(f.keys, f.owners, f.offsets, e.key_low, e.segment_id, e.event_offset + 1)
$$;
COMMENT ON FUNCTION weir_internal.first_behind(bigint, jsonb, jsonb) IS 'The first segment of the second cut of which the first cut has read more; null if the first cut is at or before the second.';

CREATE OR REPLACE FUNCTION weir_internal.at_or_before(in_stream_id bigint, cut jsonb, other jsonb) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$ SELECT weir_internal.first_behind(in_stream_id, cut, other) IS NULL $$;
COMMENT ON FUNCTION weir_internal.at_or_before(bigint, jsonb, jsonb) IS 'Whether the second cut has passed everything that the first cut has passed.';

-- Of two valid cuts. At every key the front of the join is the newer of their two fronts (see front). A segment
-- that is the front over only a part of its range is future. Each step groups or sorts, and none compares pairs of
-- segments, so that two cuts of thousands of segments do not take quadratic time. Most pairs of cuts have the same
-- segments: then the fronts are equal, and only the offsets differ.
CREATE OR REPLACE FUNCTION weir_internal.join_cuts(in_stream_id bigint, cut jsonb, other jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    same boolean;
    furthest jsonb;
BEGIN
    SELECT bool_and(a.value IS NOT NULL AND b.value IS NOT NULL),
           jsonb_object_agg(key, greatest(a.value, b.value))
    INTO same, furthest
    FROM jsonb_each(join_cuts.cut) a FULL JOIN jsonb_each(join_cuts.other) b USING (key);
    IF same THEN
        RETURN furthest;
    END IF;
    RETURN (
        WITH border AS (
            SELECT c.side, c.segment_id, c.event_offset, dense_rank() OVER (ORDER BY v.key) AS piece
            FROM (SELECT 1 AS side, * FROM weir_internal.cut_entries(cut)
                  UNION ALL SELECT 2, * FROM weir_internal.cut_entries(other)) c
            CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
                SELECT * FROM weir_internal.segment g
                WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s
            CROSS JOIN LATERAL (VALUES (s.key_low), (s.key_high)) v (key)
        ), entry AS MATERIALIZED (
            SELECT b.side, b.segment_id, max(b.event_offset) AS event_offset,
                   min(b.piece) AS first, max(b.piece) AS past
            FROM border b GROUP BY b.side, b.segment_id
        ), front AS (
            SELECT e.side, p.piece, min(e.segment_id) AS segment_id
            FROM entry e CROSS JOIN LATERAL generate_series(e.first, e.past - 1) p (piece)
            GROUP BY e.side, p.piece
        ), newer AS (
            SELECT f.piece, max(f.segment_id) AS segment_id FROM front f GROUP BY f.piece
        ), kept AS (
            SELECT k.segment_id, max(k.event_offset) AS event_offset,
                   count(k.piece) = max(k.pieces) AS whole
            FROM (SELECT n.segment_id, NULL::bigint AS event_offset, NULL::bigint AS pieces, n.piece
                  FROM newer n
                  UNION ALL
                  SELECT e.segment_id, e.event_offset, e.past - e.first, NULL FROM entry e) k
            GROUP BY k.segment_id HAVING count(k.piece) > 0
        )
        SELECT jsonb_object_agg(
                   weir_internal.segment_name(k.segment_id),
                   CASE WHEN k.whole THEN to_jsonb(coalesce(k.event_offset, 0))
                        ELSE '"future"'::jsonb END ORDER BY k.segment_id)
        FROM kept k);
END $$;
COMMENT ON FUNCTION weir_internal.join_cuts(bigint, jsonb, jsonb) IS 'The cut that has passed what at least one of two cuts has passed.';

-- Of valid cuts. The front of the meet is the front of all their segments together. A segment that is the front
-- over only a part of its range is future.
CREATE OR REPLACE FUNCTION weir_internal.meet_cuts(in_stream_id bigint, cuts jsonb[]) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    WITH entry AS MATERIALIZED (
        SELECT c.segment_id, min(c.event_offset) AS event_offset, s.key_low, s.key_high
        FROM unnest(cuts) AS u (cut)
        CROSS JOIN LATERAL weir_internal.cut_entries(u.cut) c
        CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
            SELECT * FROM weir_internal.segment g
            WHERE g.stream_id = in_stream_id AND g.segment_id = c.segment_id OFFSET 0) s
        GROUP BY c.segment_id, s.key_low, s.key_high
    ), front AS MATERIALIZED (
        SELECT f.keys, f.owners
        FROM (SELECT array_agg(e.segment_id) AS ids, array_agg(e.key_low) AS lows,
                     array_agg(e.key_high) AS highs FROM entry e) a
        CROSS JOIN LATERAL weir_internal.front(a.ids, a.lows, a.highs) f
    ), owner AS (
        SELECT o.segment_id, count(*) AS pieces
        FROM front f CROSS JOIN LATERAL unnest(f.owners) AS o (segment_id) GROUP BY o.segment_id
    )
    SELECT jsonb_object_agg(
               weir_internal.segment_name(e.segment_id),
               CASE WHEN o.pieces = width_bucket(e.key_high, f.keys) - width_bucket(e.key_low, f.keys)
                    THEN to_jsonb(e.event_offset) ELSE '"future"'::jsonb END
               ORDER BY e.segment_id)
    FROM entry e JOIN owner o USING (segment_id) CROSS JOIN front f
$$;
COMMENT ON FUNCTION weir_internal.meet_cuts(bigint, jsonb[]) IS 'The cut that has passed what all of several cuts have passed.';

-- The later of a cut and the head, at every key. Usually every segment of the head is older than those of the cut:
-- then the cut is later everywhere.
CREATE OR REPLACE FUNCTION weir_internal.readable_cut(in_stream_id bigint, in_cut jsonb, in_head jsonb) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT CASE
        WHEN (SELECT max(h.segment_id) FROM weir_internal.cut_entries(in_head) h)
             <= (SELECT min(c.segment_id) FROM weir_internal.cut_entries(in_cut) c)
             AND NOT in_head ?| (SELECT array_agg(key) FROM jsonb_object_keys(in_cut) AS key)
        THEN in_cut
        ELSE weir_internal.join_cuts(in_stream_id, in_cut, in_head)
    END
$$;
COMMENT ON FUNCTION weir_internal.readable_cut(bigint, jsonb, jsonb) IS 'The join of a cut and the head: the cut, or the head where that is later.';

CREATE OR REPLACE FUNCTION weir_internal.tail_cut(in_stream_id bigint) RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT jsonb_object_agg(weir_internal.segment_name(t.segment_id), t.tail_offset ORDER BY t.segment_id)
    FROM weir_internal.segment_tail t WHERE t.stream_id = in_stream_id
$$;
COMMENT ON FUNCTION weir_internal.tail_cut(bigint) IS 'The tail of a stream as a cut.';

-- The rules of weir.model.stream_cut.check_valid for cuts that a person gives in SQL; a test compares the two. Cuts
-- that Weir recorded are valid, and are not checked again.
CREATE OR REPLACE FUNCTION weir_internal.valid_cut(in_stream_id bigint, cut jsonb) RETURNS jsonb
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
#variable_conflict use_column
DECLARE
    nobody CONSTANT bigint := 9223372036854775807;
    k double precision[];
    o bigint[];
    wrong record;
BEGIN
    IF cut IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT c.segment_id, c.event_offset, e.end_offset INTO wrong
    FROM weir_internal.cut_segments(in_stream_id, cut) c
    LEFT JOIN weir_internal.segment_tail t ON t.stream_id = in_stream_id AND t.segment_id = c.segment_id
    CROSS JOIN LATERAL (SELECT coalesce(t.tail_offset, c.events) AS end_offset) e
    WHERE c.event_offset > e.end_offset ORDER BY c.segment_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'offset % does not exist in segment %; choose one from 0 to its end, %.',
            wrong.event_offset, weir_internal.segment_name(wrong.segment_id), wrong.end_offset USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    SELECT f.keys, f.owners INTO k, o FROM weir_internal.front(in_stream_id, cut) f;
    SELECT c.segment_id, c.event_offset, min(p.owner) AS older INTO wrong
    FROM weir_internal.cut_segments(in_stream_id, cut) c
    CROSS JOIN LATERAL (
        SELECT o[i] AS owner
        FROM generate_series(width_bucket(c.key_low, k), width_bucket(c.key_high, k) - 1) i) p
    GROUP BY c.segment_id, c.event_offset
    HAVING (min(p.owner) < c.segment_id) = (c.event_offset IS NOT NULL)
    ORDER BY c.segment_id LIMIT 1;
    IF wrong.event_offset IS NOT NULL THEN
        RAISE EXCEPTION 'segment % has an offset, but the stream cut has not passed its predecessor % yet; list % as future or leave it out.',
            weir_internal.segment_name(wrong.segment_id), weir_internal.segment_name(wrong.older),
            weir_internal.segment_name(wrong.segment_id) USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    ELSIF wrong.segment_id IS NOT NULL THEN
        RAISE EXCEPTION 'the stream cut lists segment % as future, but lists no predecessor of it; give it an offset, or list the predecessor that is read next.',
            weir_internal.segment_name(wrong.segment_id) USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    SELECT k[i] AS low, coalesce(k[i + 1], 1.0) AS high INTO wrong
    FROM generate_subscripts(k, 1) i WHERE o[i] = nobody AND k[i] < 1.0 ORDER BY i LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'the stream cut has no segment for the keys [%, %); add the segment to read next there, as future if the cut lists one of its predecessors.',
            wrong.low, wrong.high USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    -- A segment between two segments of a cut was created when the older one was sealed, or later.
    WITH listed AS MATERIALIZED (
        SELECT min(c.sealed_epoch) AS oldest, max(c.creation_epoch) AS newest
        FROM weir_internal.cut_segments(in_stream_id, cut) c
    )
    SELECT g.segment_id, least(o[i - 1], o[i]) AS older, greatest(o[i - 1], o[i]) AS newer INTO wrong
    FROM listed l
    CROSS JOIN LATERAL (  -- OFFSET 0: see cut_segments
        SELECT * FROM weir_internal.segment s
        WHERE s.stream_id = in_stream_id AND s.segment_id >= weir_internal.first_segment_id(l.oldest)
          AND s.segment_id < weir_internal.first_segment_id(l.newest + 1) OFFSET 0) g
    CROSS JOIN LATERAL generate_series(
        width_bucket(g.key_low, k) + 1, width_bucket(g.key_high, k)) i
    WHERE k[i] < g.key_high AND g.segment_id > least(o[i - 1], o[i])
      AND g.segment_id < greatest(o[i - 1], o[i])
    ORDER BY g.segment_id LIMIT 1;
    IF FOUND THEN
        RAISE EXCEPTION 'segment % comes after %, which is unread, and before %, which can''t be reached yet; list % as future in place of %.',
            weir_internal.segment_name(wrong.segment_id), weir_internal.segment_name(wrong.older),
            weir_internal.segment_name(wrong.newer), weir_internal.segment_name(wrong.segment_id),
            weir_internal.segment_name(wrong.newer) USING ERRCODE = 'WEIR2', DETAIL = 'cut_invalid';
    END IF;
    RETURN cut;
END $$;
COMMENT ON FUNCTION weir_internal.valid_cut(bigint, jsonb) IS 'A stream cut as it was given, or an error that says which of its segments is wrong, and why.';
